import type { RequestCost } from './request-cost.js'

/** Requests that a staging has under way, unless it is told otherwise. */
const CONNECTIONS = 64
/** Headers of a shard that follow each other before more are asked for at once: eight, and a stretch of 32. */
const HEADERS_IN_A_ROW = 40

/** Headers of all members of shards, which are read before the first sample is known. */
export interface ColdHeaders {
  readonly count: number
  /** That come in a millisecond; more than 0. */
  readonly perMs: number
}

/** What is waited for before a sample is fed: its own bytes, its shard, or the whole copy. */
export type ColdSupply =
  | { readonly kind: 'samples'; readonly headers?: ColdHeaders | undefined }
  | { readonly kind: 'shards'; readonly headers?: ColdHeaders | undefined; readonly shardCount: number }
  | { readonly kind: 'copy' }

interface ColdStartOptions {
  readonly sampleCount: number
  readonly totalBytes: number
  /** Samples in a batch of all ranks of this machine, which is taken to be the whole job. */
  readonly globalBatch: number
  /** What the feed's process takes until the source is listed, ms. */
  readonly startMs: number
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
  const { sampleCount, globalBatch, startMs, stepMs } = options
  const { wholeMs, readyMs } = planArrival(options)
  const firstBatchMs = readyMs(Math.min(globalBatch, sampleCount))
  const steps = Math.floor(sampleCount / globalBatch)
  const plan = { firstBatchMs: startMs + firstBatchMs, wholeMs: startMs + wholeMs }
  if (stepMs === undefined || steps === 0) return { ...plan, epochMs: null, waitMs: null }
  let nowMs = 0
  for (let step = 1; step <= steps; step++) nowMs = Math.max(nowMs, readyMs(step * globalBatch)) + stepMs
  const epochMs = startMs + nowMs
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
function planHeaders(headers: ColdHeaders | undefined, fixedMs: number): number {
  if (headers === undefined) return 0
  return Math.max(Math.min(headers.count, HEADERS_IN_A_ROW) * fixedMs, headers.count / headers.perMs)
}
