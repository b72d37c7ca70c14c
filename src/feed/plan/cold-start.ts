import type { RequestCost } from './request-cost.js'

/** Requests that a staging has under way, unless it is told otherwise. */
const CONNECTIONS = 64
/** Headers of shards that a feed has under way, and how many one processor asks for in a millisecond. */
const HEADERS_AT_ONCE = 512
const HEADERS_PER_MS = 12
/** Headers of a shard that follow each other before more are asked for at once: eight, and a stretch of 32. */
const HEADERS_IN_A_ROW = 40

/**
 * What is waited for before a sample is fed: its own bytes, its shard, or the whole copy; shards are looked for in
 * `headers`, those of all members, before the first sample is known.
 */
export type ColdSupply =
  | { readonly kind: 'samples'; readonly headers: number }
  | { readonly kind: 'shards'; readonly headers: number; readonly shardCount: number }
  | { readonly kind: 'copy' }

interface ColdStartOptions {
  readonly sampleCount: number
  readonly totalBytes: number
  /** Samples in a batch of all ranks of this machine, which is taken to be the whole job. */
  readonly globalBatch: number
  /** What listing the source takes, ms. */
  readonly listMs: number
  /** What an object of the store takes, and what the link carries. */
  readonly cost: RequestCost
  /** What training takes for a batch, ms; undefined: nothing is said about waiting. */
  readonly stepMs: number | undefined
  readonly supply: ColdSupply
}

/** How the first epoch of a dataset that is not here goes, ms from the start. */
export interface ColdStart {
  readonly firstBatchMs: number
  readonly wholeMs: number
  /** End of the first epoch, and how much of it training waits for data. */
  readonly epochMs: number | null
  readonly waitMs: number | null
}

/** Says when the first batch, the first epoch and the whole copy are there, when samples are fetched in order of need. */
export function planColdStart(options: ColdStartOptions): ColdStart {
  const { sampleCount, globalBatch, listMs, stepMs } = options
  const { wholeMs, readyMs } = planArrival(options)
  const firstBatchMs = readyMs(Math.min(globalBatch, sampleCount))
  const steps = Math.floor(sampleCount / globalBatch)
  const plan = { firstBatchMs: listMs + firstBatchMs, wholeMs: listMs + wholeMs }
  if (stepMs === undefined || steps === 0) return { ...plan, epochMs: null, waitMs: null }
  let nowMs = 0
  for (let step = 1; step <= steps; step++) nowMs = Math.max(nowMs, readyMs(step * globalBatch)) + stepMs
  const epochMs = listMs + nowMs
  return { ...plan, epochMs, waitMs: epochMs - steps * stepMs }
}

/** When everything is there, and when the first so many samples of the order are, ms after the listing. */
function planArrival({ sampleCount, totalBytes, cost, supply }: ColdStartOptions): {
  readonly wholeMs: number
  readonly readyMs: (samples: number) => number
} {
  const { fixedMs, bytesPerMs } = cost
  const carryMs = totalBytes / bytesPerMs
  const sampleMs = Math.max(fixedMs / CONNECTIONS, carryMs / sampleCount)
  if (supply.kind === 'copy') {
    const wholeMs = fixedMs + sampleCount * sampleMs
    return { wholeMs, readyMs: () => wholeMs }
  }
  const listedMs = planHeaders(supply.headers, fixedMs)
  if (supply.kind === 'samples') {
    const wholeMs = fixedMs + Math.max(sampleCount * sampleMs, listedMs)
    return { wholeMs, readyMs: (samples) => listedMs + fixedMs + samples * sampleMs }
  }
  const { shardCount } = supply
  const shardMs = Math.max(fixedMs / CONNECTIONS, carryMs / shardCount)
  // Meanwhile shards come in the order of the listing; of those behind, samples are in as many as chance has it.
  const coming = Math.max(0, shardCount - listedMs / shardMs)
  const needed = (samples: number) => coming * (1 - (1 - 1 / shardCount) ** samples)
  const wholeMs = fixedMs + Math.max(shardCount * shardMs, listedMs)
  return { wholeMs, readyMs: (samples) => listedMs + fixedMs + needed(samples) * shardMs }
}

/** How long the headers of shards take, ms. */
function planHeaders(headers: number, fixedMs: number): number {
  const roundMs = Math.min(headers, HEADERS_IN_A_ROW) * fixedMs
  return Math.max(roundMs, (headers / HEADERS_AT_ONCE) * fixedMs, headers / HEADERS_PER_MS)
}
