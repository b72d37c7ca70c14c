/** What the sizes of a feed follow from. */
export interface MemoryOptions {
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
}

export interface MemoryPlan {
  readonly k: number
  /** Asks for more of a list when at most this many of its samples are ready or coming. */
  readonly lowWater: number
  /** Bytes for prefetched samples of all ranks. */
  readonly prefetchBytes: number
  /** Bytes that clients may be reading. */
  readonly leaseBytes: number
  /** Bytes for the samples of the next epoch (Cache_next). */
  readonly carryBytes: number
  /** Bytes without which a batch might never fit. */
  readonly leastBytes: number
  readonly isFeasible: boolean
}

/** Room for holes, alignment and sizes above the mean. */
const MARGIN = 1.1

/**
 * Shares one byte budget: what clients hold comes first, then two thirds of the rest at most for prefetching (k
 * shrinks until it fits, never below 1), then Cache_next.
 */
export function planMemory(options: MemoryOptions): MemoryPlan {
  const { memoryBytes, sampleBytes, nodeCount, ranks } = options
  const largestBatch = Math.max(1, ...ranks.map((rank) => rank.batchSize))
  const held = ranks.reduce((sum, rank) => sum + (rank.leases + 1) * rank.batchSize, 0)
  const leaseBytes = Math.ceil(MARGIN * (held * sampleBytes + options.largestBytes))
  const leastBytes = Math.ceil(MARGIN * (largestBatch * sampleBytes + 2 * options.largestBytes))
  const demand = Math.ceil(largestBatch / nodeCount)
  const roomBytes = Math.max(0, memoryBytes - leaseBytes) * (2 / 3)
  const perSampleOfK = MARGIN * nodeCount * sampleBytes * Math.max(1, ranks.length)
  /** The largest number of samples ahead of each list that fits. */
  const aheadAtMost = Math.max(1, Math.floor(roomBytes / perSampleOfK))
  const wanted =
    options.k === 'auto'
      ? Math.max(demand + 1, Math.floor(options.requestBytes / Math.max(1, sampleBytes)))
      : options.k
  // One request is read while the one before is used up; where memory is short, two batches ahead come first.
  const atLeast = Math.min(2 * demand, aheadAtMost - 1)
  const k = Math.max(1, Math.min(wanted, aheadAtMost - atLeast, options.sampleCount))
  const lowWater = Math.max(0, atLeast, Math.min(k, aheadAtMost - k))
  const prefetchBytes = Math.ceil((lowWater + k) * perSampleOfK + options.largestBytes)
  return {
    k,
    lowWater,
    prefetchBytes,
    leaseBytes,
    carryBytes: Math.max(0, Math.floor((memoryBytes - prefetchBytes - leaseBytes) * 0.95)),
    leastBytes,
    isFeasible: memoryBytes >= leastBytes,
  }
}

/** Batches that a client may have on their way or in use at least and at most, and what they may come to. */
const DEPTH = { least: 3, most: 32, bytes: 8 * 2 ** 20, shareOfMemory: 1 / 8 }

/**
 * Batches that a client has on their way or in use where it does not say: three, and more where they are small, so
 * that a hiccup of a few milliseconds (a thread that waits for a processor) does not reach the trainer.
 */
export function planDepth(options: {
  readonly batchBytes: number
  readonly memoryBytes: number
  /** Clients that may share the memory: the workers of all ranks. */
  readonly clients: number
}): number {
  const { batchBytes, memoryBytes, clients } = options
  const bytes = Math.min(DEPTH.bytes, (memoryBytes * DEPTH.shareOfMemory) / clients)
  return Math.min(DEPTH.most, Math.max(DEPTH.least, Math.floor(bytes / batchBytes)))
}

/** What the arena holds at a moment, in bytes. */
export interface ArenaUse {
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
