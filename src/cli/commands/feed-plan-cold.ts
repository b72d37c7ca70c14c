import { DscError } from '../../failure/dsc-error.js'
import { type ColdSupply, planColdStart } from '../../feed/plan/cold-start.js'
import type { RequestCost } from '../../feed/plan/request-cost.js'
import { formatByteSize } from '../../model/byte-size.js'
import { formatDuration } from '../../model/duration.js'
import { formatCount } from '../../model/format-count.js'
import type { FormatName } from '../../model/sample-formats.js'
import { estimateShards } from '../../open/estimate-shards.js'
import type { FeedStart } from '../../open/feed-request.js'
import { findKeptSamples } from '../../open/find-shard-samples.js'
import { listSource } from '../../open/list-source.js'
import { measureHeaders } from '../../open/measure-headers.js'
import { samplesCacheFolder } from '../../open/samples-folder.js'
import { WHOLE_OBJECT_BYTES } from '../../proof/plan-parts.js'
import { toText } from '../../samples/byte-path.js'
import { listSamples } from '../../samples/listed-samples.js'
import type { AnswerOf } from '../answers/answer-schemas.js'
import type { CliContext } from '../context.js'

/** The arguments of `dsc feed plan --cold`. */
interface ColdPlanRequest {
  readonly target: string
  readonly split: string | undefined
  readonly only: readonly string[] | undefined
  readonly format: FormatName | undefined
  readonly start: FeedStart
  readonly globalBatch: number
  readonly stepMs: number | undefined
  readonly cost: RequestCost | undefined
}

/** The data that a feed will wait for, and its number of samples. */
interface PlannedSupply {
  /** The number of files if rows are not counted. */
  readonly sampleCount: number
  /** False for rows: their number per file is known only after the download. */
  readonly isCounted: boolean
  readonly supply: ColdSupply
  /** Why the first batch comes when it does, as the end of a sentence; empty: it waits only for its samples. */
  readonly reason: string
}

/**
 * Shows how the first epoch of a dataset goes on a node that has none of it. Lists the source; if the list of samples
 * of its tar shards is not known here, reads headers for up to a second. Call it first in a process: a feed will take
 * as long to start and to list as this did. Resolves with the number of samples; undefined: not known yet.
 */
export async function showColdPlan(
  context: CliContext,
  request: ColdPlanRequest,
): Promise<number | undefined> {
  const { target, split, start, globalBatch, stepMs, cost } = request
  if (cost === undefined)
    throw new DscError('USAGE', 'how long a dataset takes to come depends on its store', {
      hint: '--fixed-ms 20 --bandwidth 120MB/s: what an object takes however small it is, and what the link carries',
    })
  const source = await listSource(context, target, split)
  const startMs = performance.now()
  const { files, listMs } = source
  const totalBytes = files.reduce((sum, { size }) => sum + size, 0)
  const { sampleCount, isCounted, supply, reason } = await planSupply(context, request, source)
  const partedCount = files.filter(({ size }) => size > WHOLE_OBJECT_BYTES).length
  const plan = planColdStart({
    ...{ sampleCount, totalBytes, partedCount, supply },
    ...{ globalBatch, startMs, cost, stepMs: isCounted ? stepMs : undefined },
  })
  const answer: AnswerOf<'feed plan --cold'> = {
    dataset: target,
    objects: files.length,
    contentBytes: totalBytes,
    listMs,
    startMs,
    start,
    samples: isCounted ? sampleCount : null,
    isFedWhileArriving: supply.kind !== 'copy',
    ...plan,
  }
  context.report.result(answer, () => formatColdPlan(answer, reason))
  return isCounted ? sampleCount : undefined
}

async function planSupply(
  context: CliContext,
  { target, split, only, start, ...request }: ColdPlanRequest,
  { dataset, version, files }: Awaited<ReturnType<typeof listSource>>,
): Promise<PlannedSupply> {
  const format = request.format ?? dataset.format
  const listed = listSamples(files, { folder: target, only, format })
  const copy = { kind: 'copy' } as const
  const isCounted = true
  if (listed.kind === 'rows')
    return {
      sampleCount: files.length,
      isCounted: false,
      supply: copy,
      reason: ': rows of files are fed once they are here',
    }
  if (listed.kind === 'files') {
    const supply = start === 'staged' ? copy : ({ kind: 'samples' } as const)
    return { sampleCount: listed.table.count, isCounted, supply, reason: '' }
  }
  const shardCount = listed.shards.length
  const isWhole = listed.shards.every(({ size }) => size <= WHOLE_OBJECT_BYTES)
  const wholeShards = isWhole ? shardCount : undefined
  const known = await findKept(context, { version, split, shards: listed.shards })
  if (known !== undefined) {
    const shown = { sampleCount: known, isCounted, reason: ', for the list of its samples is here' }
    if (start === 'staged') return { ...shown, supply: copy }
    if (start === 'unproven') return { ...shown, supply: { kind: 'samples', wholeShards } }
    return { ...shown, supply: { kind: 'shards', shardCount } }
  }
  const objects = new Map(files.map(({ path, object }) => [path, object]))
  const shards = listed.shards.map(({ path }) => objects.get(toText(path))!)
  const { samples: sampleCount, headers: count } = await estimateShards(context, dataset, shards)
  if (sampleCount === 0)
    throw new DscError('SOURCE_EMPTY', `no shard of ${target} that was looked at has a member`, {
      hint: `look at the first one: ${toText(listed.shards[0]!.path)} is empty or damaged`,
    })
  if (count === undefined)
    return { sampleCount, isCounted, supply: copy, reason: ': the members of its shards are small' }
  if (start === 'staged') return { sampleCount, isCounted, supply: copy, reason: '' }
  const headers = { count, ...(await measureHeaders(context, dataset, shards)) }
  const described = `${formatCount(count, 'header')}, ${headers.perMs.toFixed(1)} a millisecond`
  if (start === 'unproven')
    return {
      sampleCount,
      isCounted,
      supply: { kind: 'samples', headers, wholeShards },
      reason: `, after about ${described}`,
    }
  return {
    sampleCount,
    isCounted,
    supply: { kind: 'shards', headers, shardCount },
    reason: `, when the shards of its samples are here; after about ${described}`,
  }
}

/** The number of samples in the list kept on this node; undefined if no list is kept. */
async function findKept(
  context: CliContext,
  listed: Parameters<typeof findKeptSamples>[0],
): Promise<number | undefined> {
  const { root } = (await context.config()).cache
  return findKeptSamples(listed, { cacheFolder: samplesCacheFolder(context.environment), root })?.table.count
}

const LEFT_OUT = [
  'An estimate, and rather too early: it takes the link to be full, and leaves out what the staging takes of the',
  'processors that read headers and feed, what reading a copy again for its checksums takes, and what others do here.',
]

function formatColdPlan(plan: AnswerOf<'feed plan --cold'>, reason: string): string {
  const time = (ms: number) => formatDuration(Math.max(1000, Math.round(ms / 1000) * 1000))
  const lines = [
    `${plan.dataset}: ${formatCount(plan.objects, 'object')}, ${formatByteSize(plan.contentBytes)}, planned as if none of it were here`,
    `first batch after        ${time(plan.firstBatchMs)}${reason}`,
    `whole copy after         ${time(plan.wholeMs)}`,
  ]
  if (plan.epochMs !== null && plan.waitMs !== null)
    lines.push(`first epoch takes        ${time(plan.epochMs)}, of which training waits ${time(plan.waitMs)}`)
  lines.push(...LEFT_OUT)
  return lines.join('\n')
}
