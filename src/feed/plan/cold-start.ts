import type { RequestCost } from './request-cost.js'

/** Requests that a staging has under way, unless it is told otherwise. */
const CONNECTIONS = 64
/** Whole objects that are under way while no reader waits for any, at least; and for how long others are begun, ms. */
const LEAST_UNDER_WAY = 2
const UNDER_WAY_MS = 500
/** Headers of a shard that follow each other before more are asked for at once: eight, and a stretch of 32. */
const HEADERS_IN_A_ROW = 40
/** What a Python process takes to start, to load the client and to connect to its feed, ms. */
const CLIENT_START_MS = 300
/** What is written and not yet on the disk when the last byte comes, at most; and what a disk takes. */
const LAST_SYNC_BYTES = 64 * 2 ** 20
const SYNCED_BYTES_PER_MS = 200_000

/** Headers of all members of shards, which are read before the first sample is known. */
export interface ColdHeaders {
  readonly count: number
  /** That come in a millisecond after the warm-up; more than 0. */
  readonly perMs: number
  /** While connections are opened and code is compiled: how long that takes, and how many come meanwhile. */
  readonly warmUp: { readonly ms: number; readonly count: number }
}

/** What is waited for before a sample is fed: its own bytes, its shard, or the whole copy. */
export type ColdSupply =
  | {
      readonly kind: 'samples'
      readonly headers?: ColdHeaders | undefined
      /** Shards that come in one piece: a sample of one that is on its way waits for all of it. */
      readonly wholeShards?: number | undefined
    }
  | { readonly kind: 'shards'; readonly headers?: ColdHeaders | undefined; readonly shardCount: number }
  | { readonly kind: 'copy' }

interface ColdStartOptions {
  readonly sampleCount: number
  readonly totalBytes: number
  /** Objects that come in parts: the store is asked for the checksums of each before. */
  readonly partedCount: number
  /** Samples in a batch of all ranks of this machine, which is taken to be the whole job. */
  readonly globalBatch: number
  /** What the feed's process takes until the source is listed, ms; its client's start comes on top. */
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

/**
 * Says when the first batch, the first epoch and the whole copy are there, when samples are fetched in order of need and
 * nothing keeps the link from being full. Left out: what the staging takes of the processors, and of the disk but for
 * its last sync.
 */
export function planColdStart(options: ColdStartOptions): ColdStart {
  const { sampleCount, globalBatch, stepMs } = options
  const startMs = options.startMs + CLIENT_START_MS
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
function planArrival({ sampleCount, totalBytes, partedCount, cost, supply }: ColdStartOptions): {
  readonly wholeMs: number
  readonly readyMs: (samples: number) => number
} {
  const { fixedMs, bytesPerMs } = cost
  const carryMs = totalBytes / bytesPerMs
  const sampleMs = Math.max(fixedMs / CONNECTIONS, carryMs / sampleCount)
  /** Until the store has told the checksums of as many objects. */
  const toldMs = (objects: number) => Math.ceil(Math.min(partedCount, objects) / CONNECTIONS) * fixedMs
  const syncMs = Math.min(totalBytes, LAST_SYNC_BYTES) / SYNCED_BYTES_PER_MS
  const wholeAfter = (comingMs: number) => toldMs(1) + fixedMs + comingMs + syncMs
  if (supply.kind === 'copy') {
    const wholeMs = wholeAfter(sampleCount * sampleMs)
    return { wholeMs, readyMs: () => wholeMs }
  }
  const listedMs = planHeaders(supply.headers, fixedMs)
  const beganMs = (samples: number) => listedMs + toldMs(samples) + fixedMs
  if (supply.kind === 'samples') {
    const wholeMs = wholeAfter(Math.max(sampleCount * sampleMs, listedMs))
    const underWayMs = planUnderWay(supply.wholeShards, { carryMs, listedMs })
    const readyMs = (samples: number) => beganMs(samples) + underWayMs(samples) + samples * sampleMs
    return { wholeMs, readyMs }
  }
  const { shardCount } = supply
  const shardMs = Math.max(fixedMs / CONNECTIONS, carryMs / shardCount)
  // Meanwhile shards come in the order of the listing; of those behind, samples are in as many as chance has it.
  const coming = Math.max(0, shardCount - listedMs / shardMs)
  const needed = (samples: number) => coming * (1 - (1 - 1 / shardCount) ** samples)
  const wholeMs = wholeAfter(Math.max(shardCount * shardMs, listedMs))
  return { wholeMs, readyMs: (samples) => beganMs(samples) + needed(samples) * shardMs }
}

/** How long so many samples wait for shards that were begun before their order was known, ms, as chance has it. */
function planUnderWay(
  shards: number | undefined,
  { carryMs, listedMs }: { readonly carryMs: number; readonly listedMs: number },
): (samples: number) => number {
  if (shards === undefined) return () => 0
  const shardMs = carryMs / shards
  const count = Math.min(shards, Math.max(LEAST_UNDER_WAY, Math.ceil(UNDER_WAY_MS / shardMs)))
  const leftMs = count * shardMs - (listedMs % (count * shardMs))
  return (samples) => leftMs * (1 - (1 - count / shards) ** samples)
}

/** How long the headers of shards take, ms. */
function planHeaders(headers: ColdHeaders | undefined, fixedMs: number): number {
  if (headers === undefined) return 0
  const { count, perMs, warmUp } = headers
  const isWarm = count > warmUp.count
  const pacedMs = isWarm ? warmUp.ms + (count - warmUp.count) / perMs : (warmUp.ms * count) / warmUp.count
  return Math.max(Math.min(count, HEADERS_IN_A_ROW) * fixedMs, pacedMs)
}
