/** What the sizes of a feed follow from. */
export interface ArenaBudgetOptions {
  /** Bytes of the whole arena. */
  readonly memoryBytes: number
  /** Mean bytes of a sample in the arena. */
  readonly sampleBytes: number
  readonly largestBytes: number
  readonly sampleCount: number
  readonly nodeCount: number
  /** One entry per rank on this machine. `leases`: batches that its clients may hold at once. */
  readonly ranks: readonly { readonly batchSize: number; readonly leases: number }[]
  /** Samples per request, or 'auto'. */
  readonly k: number | 'auto'
  /** Bytes per request that `auto` aims for. */
  readonly requestBytes: number
  /** Whether samples are taken as seed 000 says, from a prefetch space of their own. Default false. */
  readonly isConformance?: boolean
}

/** How the bytes of an arena are shared out. */
export interface ArenaBudget {
  readonly k: number
  /** Asks for more of a list when at most this many of its samples are ready or coming; −1: on a miss only. */
  readonly lowWater: number
  /** Bytes for prefetched samples of all ranks. */
  readonly prefetchBytes: number
  /** Bytes that clients may be reading. */
  readonly leaseBytes: number
  /** Bytes in which prefetched samples lie: what clients read lies there, too, unless `isConformance`. */
  readonly bottomBytes: number
  /** Bytes for the samples of the next epoch (Cache_next). */
  readonly carryBytes: number
  /** Bytes without which a batch might never fit. */
  readonly leastBytes: number
  readonly isFeasible: boolean
}

/**
 * Samples of a request that is sized by bytes. Of tiny ones 4 MiB would be tens of thousands, each some work for the
 * feed's thread, and batches would wait for it: 0.9 s at times, 0.3 s with this (`feed-epochs.mjs 3000000 2`).
 */
const MAX_REQUEST_SAMPLES = 4096

/** Room for holes, alignment and sizes above the mean. */
const MARGIN = 1.1

/**
 * Shares one byte budget: what clients hold comes first, then two thirds of the rest at most for prefetching (k
 * shrinks until it fits, never below 1), then Cache_next.
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

/** What prefetching may take, and would. */
interface PrefetchRoom {
  readonly bytes: number
  /** Bytes that one sample more in each request takes. */
  readonly bytesPerSampleOfK: number
  readonly largestBytes: number
  /** Samples of a batch that one node has. */
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
  /** The largest number of samples ahead of each list that fits. */
  const aheadAtMost = Math.max(1, Math.floor(bytes / bytesPerSampleOfK))
  // One request is read while the one before is used up; where memory is short, two batches ahead come first.
  const atLeast = Math.min(2 * demand, aheadAtMost - 1)
  const k = Math.max(1, Math.min(wanted, aheadAtMost - atLeast))
  const lowWater = Math.max(0, atLeast, Math.min(k, aheadAtMost - k))
  return { k, lowWater, prefetchBytes: Math.ceil((lowWater + k) * bytesPerSampleOfK + largestBytes) }
}

/** Seed 000 asks for k whatever the room is: a request is cut short where the rest of it has none. */
function planSeedPrefetch({ bytes, bytesPerSampleOfK, largestBytes, k }: PrefetchRoom): PrefetchBudget {
  return { k, lowWater: -1, prefetchBytes: Math.floor(Math.min(bytes, k * bytesPerSampleOfK + largestBytes)) }
}

function planRequestSamples({ requestBytes, sampleBytes }: ArenaBudgetOptions, demand: number): number {
  const bySize = Math.floor(requestBytes / Math.max(1, sampleBytes))
  return Math.max(demand + 1, Math.min(bySize, MAX_REQUEST_SAMPLES))
}

/** What the batches of a client have room in. */
interface ClientRoom {
  readonly batchBytes: number
  readonly memoryBytes: number
  /** Clients that may share the memory: the workers of all ranks. */
  readonly clients: number
}

/** Batches that a client may have on their way or in use at least and at most, and what they may come to. */
const DEPTH = { least: 3, most: 32, bytes: 8 * 2 ** 20, shareOfMemory: 1 / 8 }

/**
 * Batches that a client has on their way or in use where it does not say: three, and more where they are small, so
 * that a hiccup of a few milliseconds (a thread that waits for a processor) does not reach the trainer.
 */
export function planDepth(options: ClientRoom): number {
  const { batchBytes, memoryBytes, clients } = options
  const bytes = Math.min(DEPTH.bytes, (memoryBytes * DEPTH.shareOfMemory) / clients)
  return Math.min(DEPTH.most, Math.max(DEPTH.least, Math.floor(bytes / batchBytes)))
}

/**
 * Batches that a client keeps beside those where it lets the feed choose: as many, for it makes something of them in a
 * thread that waits for a processor as others do, but never more than their share of the memory; at least 1.
 */
export function planKeep(room: ClientRoom): number {
  const { batchBytes, memoryBytes, clients } = room
  const most = Math.floor((memoryBytes * DEPTH.shareOfMemory) / clients / batchBytes)
  return Math.max(1, Math.min(planDepth(room), most))
}

/** What the arena holds at a moment, in bytes. */
interface ArenaUse {
  readonly totalBytes: number
  readonly bottomBytes: number
  readonly topBytes: number
  /** Bytes set aside for prefetched and leased samples. */
  readonly reserveBytes: number
  /** Bytes that Cache_next may come to hold. */
  readonly carryBytes: number
}

/** Bytes that prefetching may take now: its own reserve, and more only where Cache_next leaves it unused for good. */
export function planPrefetchRoom(use: ArenaUse): number {
  const own = use.reserveBytes - use.bottomBytes
  const spare = use.totalBytes - use.bottomBytes - Math.max(use.topBytes, use.carryBytes)
  return Math.max(0, own, spare)
}

/** A feed uses so much where it is not told, and where it fits. */
export const DEFAULT_MEMORY_BYTES = 256 * 2 ** 20

/** Of what is free, so that others find some. */
const SHARE_OF_FREE = 0.9

/** Bytes of an arena for which nobody has said how large it is to be, on a file system with `freeBytes`. */
export function planArenaBytes(freeBytes: number): number {
  if (freeBytes >= DEFAULT_MEMORY_BYTES) return DEFAULT_MEMORY_BYTES
  return Math.floor((freeBytes * SHARE_OF_FREE) / 4096) * 4096
}
