import type { CopyUse } from '../../model/copy.js'
import type { RecordStore } from '../../records/contract/record-store.js'
import { readCopyPages, readEventPages } from '../status/record-pages.js'
import { type Advice, advise, type ReportFigures, type UnusedCopy } from './advise.js'
import { type DatasetTally, HistoryTally } from './history-tally.js'
import { JOB_EVENTS, type JobTime, JobTimes } from './job-times.js'

/** Figures on staging over a period, with advice. */
export interface Report extends ReportFigures {
  readonly advice: readonly Advice[]
  /** How the GPUs of each job spent their time; those that waited longest first. */
  readonly jobs: readonly JobTime[]
}

const KINDS = [...JOB_EVENTS, 'staged', 'evicted', 'undone', 'refused'] as const

/** Sums up the history since `sinceMs` and the present copies. */
export async function readReport(
  record: RecordStore,
  asked: { readonly sinceMs: number; readonly nowMs: number; readonly node?: string | undefined },
): Promise<Report> {
  const { sinceMs, nowMs, node } = asked
  const place = { node }
  const tally = new HistoryTally()
  const wanted = { ...place, sinceMs, kinds: KINDS, limit: Number.MAX_SAFE_INTEGER }
  const times = new JobTimes()
  for await (const page of readEventPages(record, wanted))
    for (const event of page) {
      tally.add(event)
      times.add(event)
    }
  const unused: UnusedCopy[] = []
  for await (const page of readCopyPages(record, place, { nowMs }))
    unused.push(...page.filter((copy) => isUnused(copy, tally, sinceMs)).map(describeUnused))
  const datasets = [...tally.datasets.values()].toSorted((a, b) => b.readBytes - a.readBytes)
  const sum = (of: (dataset: DatasetTally) => number) => datasets.reduce((total, each) => total + of(each), 0)
  const [readBytes, storeBytes] = [sum((each) => each.readBytes), sum((each) => each.storeBytes)]
  const found = {
    sinceMs,
    untilMs: nowMs,
    node: node ?? null,
    uses: sum(({ uses }) => uses),
    hits: sum(({ hits }) => hits),
    readBytes,
    storeBytes,
    peerBytes: sum(({ peerBytes }) => peerBytes),
    savedBytes: Math.max(0, readBytes - storeBytes),
    waitedMs: sum(({ waitedMs }) => waitedMs),
    usesOfUnknownSize: tally.usesOfUnknownSize,
    datasets,
    waits: tally.waits,
    refusals: [...tally.refusals.values()].toSorted((a, b) => b.count - a.count),
    unused: unused.toSorted((a, b) => b.diskBytes - a.diskBytes),
  }
  return { ...found, advice: advise(found), jobs: times.list(nowMs) }
}

/** True also for a copy staged in the period and never used; false for any copy in use now. */
function isUnused(copy: CopyUse, tally: HistoryTally, sinceMs: number): boolean {
  if (copy.state !== 'ready' || copy.referenceCount > 0 || tally.copiesUsed.has(copy.copyId)) return false
  return copy.lastUsedAtMs < sinceMs || copy.lastUsedAtMs === copy.readyAtMs
}

function describeUnused(copy: CopyUse): UnusedCopy {
  const { dataset, node, chargedBytes, lastUsedAtMs, lastTask, lock } = copy
  return { dataset, node, diskBytes: chargedBytes, lastUsedAtMs, lastTask, isLocked: lock !== null }
}
