import type { Receipt, UsedVersion } from '../../model/receipt.js'
import type { RecordEvent } from '../../model/record-event.js'
import type { RecordStore } from '../../records/contract/record-store.js'
import { readEventPages } from '../status/record-pages.js'

/** The names under which the record may know a job: as given, by its number in Slurm, or by its pod's uid. */
export function namesOf(job: string): readonly string[] {
  return [job, `slurm:${job}`, `pod:${job}`]
}

/** Gathers a job's uses from the history; undefined if the history does not know the job. */
export async function readReceipt(
  record: Pick<RecordStore, 'listEvents'>,
  job: string,
): Promise<Receipt | undefined> {
  for (const task of namesOf(job)) {
    const events: RecordEvent[] = []
    const wanted = { task, kinds: ['leased'] as const, limit: Number.MAX_SAFE_INTEGER }
    for await (const page of readEventPages(record, wanted)) events.push(...page.filter(isKnownUse))
    if (events.length > 0) return sumUp(task, events.toReversed())
  }
  return undefined
}

/** Details that a use notes about its copy; an earlier dsc noted none. */
type UseDetail = Pick<UsedVersion, 'version' | 'source' | 'files' | 'contentBytes' | 'stripe'> & {
  readonly parties?: readonly string[] | undefined
}

function isKnownUse({ detail }: RecordEvent): boolean {
  return typeof (detail as Partial<UseDetail>).version === 'string'
}

/** `events`: oldest first. */
function sumUp(task: string, events: readonly RecordEvent[]): Receipt {
  const used = new Map<string, UsedVersion>()
  const parties = new Set<string>()
  for (const { dataset, node, atMs, detail } of events) {
    const { version, source, files, contentBytes, stripe, parties: named } = detail as unknown as UseDetail
    for (const party of named ?? []) parties.add(party)
    const key = JSON.stringify([dataset, version, source?.source, stripe])
    const before = used.get(key)
    used.set(key, {
      dataset,
      version,
      source,
      files,
      contentBytes,
      stripe,
      nodes: [...new Set([...(before?.nodes ?? []), node])],
      firstUsedAtMs: before?.firstUsedAtMs ?? atMs,
      lastUsedAtMs: atMs,
    })
  }
  return { task, parties: [...parties], used: [...used.values()] }
}
