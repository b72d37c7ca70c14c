import type { RequestCost } from './request-cost.js'

/** Default number of concurrent requests of a stager. */
const CONNECTIONS = 64
/** Minimum number of whole objects in flight while no reader waits for any; and the time that they must fill, in ms. */
const LEAST_UNDER_WAY = 2
const UNDER_WAY_MS = 500
/** Number of headers of a shard read in sequence before more are requested at once: eight, and a stretch of 32. */
const HEADERS_IN_A_ROW = 40
/** Time for a Python process to start, load the client and connect to its feed, in ms. */
const CLIENT_START_MS = 300
/** Maximum bytes written but not yet on the disk when the last byte arrives; and the speed of a disk. */
const LAST_SYNC_BYTES = 64 * 2 ** 20
const SYNCED_BYTES_PER_MS = 200_000

/** Headers of all members of shards, which must be read before the first sample is known. */
export interface ColdHeaders {
  readonly count: number
  /** Headers that arrive per millisecond after the warm-up; more than 0. */
  readonly perMs: number
  /** Duration of the warm-up, which opens connections and compiles code, and the headers that arrive during it. */
  readonly warmUp: { readonly ms: number; readonly count: number }
}

/** The bytes that a sample waits for before it is fed: its own, its shard's, or the whole copy's. */
export type ColdSupply =
  | {
      readonly kind: 'samples'
      readonly headers?: ColdHeaders | undefined
      /** Number of shards that arrive in one piece: a sample of one in flight waits for all of it. */
      readonly wholeShards?: number | undefined
    }
  | { readonly kind: 'shards'; readonly headers?: ColdHeaders | undefined; readonly shardCount: number }
  | { readonly kind: 'copy' }

interface ColdStartOptions {
  readonly sampleCount: number
  readonly totalBytes: number
  /** Number of objects that arrive in parts: dsc first asks the store for the checksums of each. */
  readonly partedCount: number
  /** Samples in a batch of all ranks of this machine, which counts as the whole job. */
  readonly globalBatch: number
  /** Time from the start of the feed's process until the source is listed, in ms, without the start of its client. */
  readonly startMs: number
  /** Time for an object of the store, and rate of the link. */
  readonly cost: RequestCost
  /** Time that training takes for a batch, in ms; undefined: nothing is said about waiting. */
  readonly stepMs: number | undefined
  readonly supply: ColdSupply
}

/** Course of the first epoch of a dataset that is not here yet, in ms from the start. */
export interface ColdStart {
  readonly firstBatchMs: number
  readonly wholeMs: number
  /** End of the first epoch, and how long training waits for data in it. */
  readonly epochMs: number | null
  readonly waitMs: number | null
}

/**
 * Estimates when the first batch, the first epoch and the whole copy are ready, if samples are fetched in order of need
 * and nothing keeps the link from being full. Leaves out the stager's load on processors and on the disk, except for
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

/** When everything has arrived, and when the first `samples` of the order have, in ms after the listing. */
function planArrival({ sampleCount, totalBytes, partedCount, cost, supply }: ColdStartOptions): {
  readonly wholeMs: number
  readonly readyMs: (samples: number) => number
} {
  const { fixedMs, bytesPerMs } = cost
  const carryMs = totalBytes / bytesPerMs
  const sampleMs = Math.max(fixedMs / CONNECTIONS, carryMs / sampleCount)
  /** Time until the store has told the checksums of that many objects. */
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
  // During the listing, shards arrive in listing order. Samples of the remaining ones are spread over shards by chance.
  const coming = Math.max(0, shardCount - listedMs / shardMs)
  const needed = (samples: number) => coming * (1 - (1 - 1 / shardCount) ** samples)
  const wholeMs = wholeAfter(Math.max(shardCount * shardMs, listedMs))
  return { wholeMs, readyMs: (samples) => beganMs(samples) + needed(samples) * shardMs }
}

/** Expected time that so many samples wait for shards begun before their order was known, in ms. */
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

/** Time to read the headers of shards, in ms. */
function planHeaders(headers: ColdHeaders | undefined, fixedMs: number): number {
  if (headers === undefined) return 0
  const { count, perMs, warmUp } = headers
  const isWarm = count > warmUp.count
  const pacedMs = isWarm ? warmUp.ms + (count - warmUp.count) / perMs : (warmUp.ms * count) / warmUp.count
  return Math.max(Math.min(count, HEADERS_IN_A_ROW) * fixedMs, pacedMs)
}
