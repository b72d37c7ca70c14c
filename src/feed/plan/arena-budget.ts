/** Input for the sizes of a feed. */
export interface ArenaBudgetOptions {
  /** Size of the whole arena, in bytes. */
  readonly memoryBytes: number
  /** Mean size of a sample in the arena, in bytes. */
  readonly sampleBytes: number
  readonly largestBytes: number
  readonly sampleCount: number
  readonly nodeCount: number
  /** One entry per rank on this machine. `leases`: number of batches that its clients may hold at once. */
  readonly ranks: readonly { readonly batchSize: number; readonly leases: number }[]
  /** Samples per request, or 'auto'. */
  readonly k: number | 'auto'
  /** Bytes per request that `auto` aims for. */
  readonly requestBytes: number
  /** Whether to take samples as seed 000 says, from a separate prefetch space. Default false. */
  readonly isConformance?: boolean
}

/** Division of an arena's bytes. */
export interface ArenaBudget {
  readonly k: number
  /** Requests more of a list when at most this many of its samples are ready or on their way; −1: on a miss only. */
  readonly lowWater: number
  /** Bytes for prefetched samples of all ranks. */
  readonly prefetchBytes: number
  /** Bytes that clients may hold. */
  readonly leaseBytes: number
  /** Bytes for prefetched samples, including samples that clients read, unless `isConformance`. */
  readonly bottomBytes: number
  /** Bytes for the samples of the next epoch (Cache_next). */
  readonly carryBytes: number
  /** Minimum bytes, without which a batch might never fit. */
  readonly leastBytes: number
  readonly isFeasible: boolean
}

/**
 * Maximum samples of a request sized by bytes. 4 MiB of tiny ones would be tens of thousands, each with work for the
 * feed's thread, and batches would wait: up to 0.9 s, 0.3 s with this limit (`feed-epochs.mjs 3000000 2`).
 */
const MAX_REQUEST_SAMPLES = 4096

/** Factor for holes, alignment and sizes above the mean. */
const MARGIN = 1.1

/**
 * Divides one byte budget. Leased batches come first, then prefetching gets at most two thirds of the rest (k shrinks
 * until it fits, never below 1), then Cache_next.
 */
export function planArenaBudget(options: ArenaBudgetOptions): ArenaBudget {
  const { memoryBytes, sampleBytes, nodeCount, ranks } = options
  const largestBatch = ranks.reduce((most, { batchSize }) => Math.max(most, batchSize), 1)
  const held = ranks.reduce((sum, rank) => sum + (rank.leases + 1) * rank.batchSize, 0)
  const leaseBytes = Math.ceil(MARGIN * (held * sampleBytes + options.largestBytes))
  const leastBytes = Math.ceil(MARGIN * (largestBatch * sampleBytes + 2 * options.largestBytes))
  const demand = Math.ceil(largestBatch / nodeCount)
  const room: PrefetchRoom = {
    bytes: Math.max(0, memoryBytes - leaseBytes) * (2 / 3),
    bytesPerSampleOfK: MARGIN * nodeCount * sampleBytes * Math.max(1, ranks.length),
    largestBytes: options.largestBytes,
    demand,
    k: Math.min(options.k === 'auto' ? planRequestSamples(options, demand) : options.k, options.sampleCount),
  }
  const isConformance = options.isConformance ?? false
  const prefetch = isConformance ? planSeedPrefetch(room) : planPrefetch(room)
  const { prefetchBytes } = prefetch
  return {
    ...prefetch,
    leaseBytes,
    bottomBytes: prefetchBytes + (isConformance ? 0 : leaseBytes),
    carryBytes: Math.max(0, Math.floor((memoryBytes - prefetchBytes - leaseBytes) * 0.95)),
    leastBytes,
    isFeasible: memoryBytes >= leastBytes,
  }
}

/** Room that prefetching may use, and its demand. */
interface PrefetchRoom {
  readonly bytes: number
  /** Bytes that each additional sample per request takes. */
  readonly bytesPerSampleOfK: number
  readonly largestBytes: number
  /** Samples of a batch on one node. */
  readonly demand: number
  /** Samples per request, if there is room. */
  readonly k: number
}

type PrefetchBudget = Pick<ArenaBudget, 'k' | 'lowWater' | 'prefetchBytes'>

function planPrefetch({
  bytes,
  bytesPerSampleOfK,
  largestBytes,
  demand,
  k: wanted,
}: PrefetchRoom): PrefetchBudget {
  /** Largest number of samples ahead of each list that fits. */
  const aheadAtMost = Math.max(1, Math.floor(bytes / bytesPerSampleOfK))
  // One request is read while the previous one is used up; if memory is short, two batches ahead come first.
  const atLeast = Math.min(2 * demand, aheadAtMost - 1)
  const k = Math.max(1, Math.min(wanted, aheadAtMost - atLeast))
  const lowWater = Math.max(0, atLeast, Math.min(k, aheadAtMost - k))
  return { k, lowWater, prefetchBytes: Math.ceil((lowWater + k) * bytesPerSampleOfK + largestBytes) }
}

/** Seed 000 requests k regardless of room: a request is cut short where the rest does not fit. */
function planSeedPrefetch({ bytes, bytesPerSampleOfK, largestBytes, k }: PrefetchRoom): PrefetchBudget {
  return { k, lowWater: -1, prefetchBytes: Math.floor(Math.min(bytes, k * bytesPerSampleOfK + largestBytes)) }
}

function planRequestSamples({ requestBytes, sampleBytes }: ArenaBudgetOptions, demand: number): number {
  const bySize = Math.floor(requestBytes / Math.max(1, sampleBytes))
  return Math.max(demand + 1, Math.min(bySize, MAX_REQUEST_SAMPLES))
}

/** Room for the batches of a client. */
interface ClientRoom {
  readonly batchBytes: number
  readonly memoryBytes: number
  /** Number of clients that may share the memory: the workers of all ranks. */
  readonly clients: number
}

/** Minimum and maximum batches that a client may have on their way or in use, and the limits on their bytes. */
const DEPTH = { least: 3, most: 32, bytes: 8 * 2 ** 20, shareOfMemory: 1 / 8 }

/**
 * Default number of batches that a client has on their way or in use: three, and more if they are small, so that a
 * hiccup of a few milliseconds (a thread that waits for a processor) does not reach the trainer.
 */
export function planDepth(options: ClientRoom): number {
  const { batchBytes, memoryBytes, clients } = options
  const bytes = Math.min(DEPTH.bytes, (memoryBytes * DEPTH.shareOfMemory) / clients)
  return Math.min(DEPTH.most, Math.max(DEPTH.least, Math.floor(bytes / batchBytes)))
}

/**
 * Additional batches that a client keeps if it lets the feed choose. The number equals the depth, because the thread
 * that processes them can wait for a processor, too, but stays within the client's share of the memory; at least 1.
 */
export function planKeep(room: ClientRoom): number {
  const { batchBytes, memoryBytes, clients } = room
  const most = Math.floor((memoryBytes * DEPTH.shareOfMemory) / clients / batchBytes)
  return Math.max(1, Math.min(planDepth(room), most))
}

/** Use of the arena at a moment, in bytes. */
interface ArenaUse {
  readonly totalBytes: number
  readonly bottomBytes: number
  readonly topBytes: number
  /** Bytes reserved for prefetched and leased samples. */
  readonly reserveBytes: number
  /** Maximum bytes that Cache_next may come to hold. */
  readonly carryBytes: number
}

/** Bytes that prefetching may use now: its own reserve, and more only where Cache_next will never use it. */
export function planPrefetchRoom(use: ArenaUse): number {
  const own = use.reserveBytes - use.bottomBytes
  const spare = use.totalBytes - use.bottomBytes - Math.max(use.topBytes, use.carryBytes)
  return Math.max(0, own, spare)
}

/** Default memory of a feed, if it fits, in bytes. */
export const DEFAULT_MEMORY_BYTES = 256 * 2 ** 20

/** Share of the free bytes to use: torch's workers pass their batches through the same file system. */
const SHARE_OF_FREE = 0.5
/** Room for a small dataset: for its samples on their way, in the epoch that runs and for the next one. */
const TIMES_DATASET = 4
const LEAST_BYTES = 8 * 2 ** 20

/**
 * Default size of an arena on a file system with `freeBytes`, in bytes. Where the default does not fit with as much
 * beside it, as in Docker's 64 MiB, it is no larger than a dataset of `datasetBytes` needs.
 */
export function planArenaBytes(freeBytes: number, datasetBytes: number): number {
  const share = Math.floor((freeBytes * SHARE_OF_FREE) / 4096) * 4096
  if (share >= DEFAULT_MEMORY_BYTES) return DEFAULT_MEMORY_BYTES
  const needed = Math.max(LEAST_BYTES, Math.ceil((TIMES_DATASET * datasetBytes) / 4096) * 4096)
  return Math.min(share, needed)
}
