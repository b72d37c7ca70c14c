import { DscError } from '../failure/dsc-error.js'
import { formatCount } from '../model/format-count.js'
import { ARENA_BASE, type ArenaFile } from './arena-file.js'
import { createFeedStream, type FeedStream } from './feed-stream.js'
import { createOrderBook } from './order-book.js'
import { type ArenaPlan, createArenaPlan, type EvictionMode } from './plan/arena-plan.js'
import { type AssignRule, type ItemPositions, planItemPositions } from './plan/assignment.js'
import { createCarryOver, planPrefix } from './plan/carry-over.js'
import { type MemoryPlan, planMemory, planPrefetchRoom } from './plan/memory-plan.js'
import { countMixed, type MixPart } from './plan/mix.js'
import type { OrderKind } from './plan/order.js'
import { planRankSequence, type RankOptions } from './plan/rank-sequence.js'
import type { PrefetchSettings } from './plan/request-plan.js'
import { createRequestSizing, type RequestSizing, type RequestSizingOptions } from './plan/request-sizing.js'
import { nodeOfSample } from './plan/sample-placement.js'
import { createStreamPlan } from './plan/stream-plan.js'
import type { ReaderPool } from './reader-pool.js'
import { meterSource, type NodeMeter } from './sources/node-meter.js'
import type { SampleSource } from './sources/sample-source.js'

export interface FeederOptions extends RequestSizingOptions {
  readonly source: SampleSource
  readonly pool: ReaderPool
  readonly arenaFile: ArenaFile
  readonly seed: number
  readonly orderKind: OrderKind
  /** The parts of the samples and how often an epoch visits them; absent: every sample once. */
  readonly mix?: readonly MixPart[] | undefined
  readonly eviction: EvictionMode
  /** Whether samples are kept for the next epoch (seed 001). */
  readonly isCarrying: boolean
  readonly nowMs: () => number
  /** A sample without room fails after this long. Default 10 s. */
  readonly roomTimeoutMs?: number | undefined
}

/** How a rank reads. `assign` is 'fixed' by default. */
export interface StreamShape extends Omit<RankOptions, 'sampleCount'> {
  readonly assign?: AssignRule
}

const NOTHING_COUNTED = { movedBytes: 0, movePasses: 0, compactions: 0, evictedRuns: 0, copiedBytes: 0 }

/** Counters of the whole feed. */
export type FeederCounts = typeof NOTHING_COUNTED

/** The one owner of the memory of a training node: streams of batches, one per rank, over one arena. */
export interface Feeder {
  readonly source: SampleSource
  readonly arena: ArenaPlan
  readonly counts: Readonly<FeederCounts>
  readonly streams: ReadonlySet<FeedStream>
  readonly memory: () => MemoryPlan
  readonly sizing: RequestSizing
  /** One per storage node. */
  readonly nodeMeters: readonly NodeMeter[]
  /** Bytes of Cache_next: kept for the running epoch, and for the one after it. */
  readonly carryBytesHeld: () => { readonly current: number; readonly next: number }
  /** Opens the stream of a rank. `leases`: batches that its clients may hold at once. */
  openStream(options: StreamShape, leases: number): FeedStream
  /** Makes room for clients of the stream that hold up to `leases` batches. */
  allowLeases(stream: FeedStream, leases: number): void
  closeStream(stream: FeedStream): void
  close(): Promise<void>
}

/** Bytes that extents begin at multiples of: a cache line, which every tensor type is content with. */
const ALIGN_BYTES = 64

/** Copying less than this costs no more than waking a thread to do it. */
const COPY_HERE_BYTES = 128 * 1024

export function createFeeder(options: FeederOptions): Feeder {
  const { pool, arenaFile, seed, orderKind, isConformance } = options
  const sizing = createRequestSizing(options)
  const { source, meters } = meterSource(options.source, options.nowMs, (timing) => {
    sizing.add(timing)
    if (!sizing.fit(lowestEpoch)) return
    const { carryBytes } = memory
    replan()
    if (memory.carryBytes < carryBytes) setPrefixes() // more room counts from the next epoch on
  })
  const { table, nodeCount, layout, placement } = source
  const nodeOf = (sample: number, position: number) =>
    placement ? placement[sample]! : nodeOfSample(layout, nodeCount, sample, position)
  const extentBytesOf = (sample: number) =>
    Math.max(1, Math.ceil(table.lengths[sample]! / ALIGN_BYTES)) * ALIGN_BYTES
  const counts = { ...NOTHING_COUNTED }
  const arena = createArenaPlan({
    totalBytes: arenaFile.bytes,
    eviction: options.eviction,
    move: (from, to, length) => arenaFile.move(ARENA_BASE + from, ARENA_BASE + to, length),
    observer: {
      moved: (_, bytes) => {
        counts.movedBytes += bytes
        counts.movePasses++
      },
      compacted: () => void counts.compactions++,
      evicted: () => void counts.evictedRuns++,
    },
  })
  const carry = createCarryOver(table.count)
  const positionCount = options.mix ? countMixed(options.mix) : table.count
  const orders = createOrderBook({ positionCount, seed, kind: orderKind, mix: options.mix, pool })
  const streams = new Map<FeedStream, { leases: number; epoch: number; readonly positionOf: ItemPositions }>()
  let memory = planFor([])
  let lowestEpoch = 0

  function planFor(ranks: readonly { batchSize: number; leases: number }[]): MemoryPlan {
    return planMemory({
      memoryBytes: arenaFile.bytes,
      sampleBytes: Math.ceil(table.totalBytes / table.count) + ALIGN_BYTES / 2,
      largestBytes: Math.ceil(table.largestBytes / ALIGN_BYTES) * ALIGN_BYTES,
      sampleCount: table.count,
      nodeCount,
      ranks,
      k: options.k,
      requestBytes: sizing.bytes,
    })
  }
  const replan = () => {
    const ranks = [...streams].map(([stream, { leases }]) => ({
      batchSize: stream.sequence.options.batchSize,
      leases,
    }))
    memory = planFor(ranks)
    arena.setLimits({
      bottomBytes: memory.prefetchBytes + memory.leaseBytes,
      topBytes: arenaFile.bytes - memory.prefetchBytes - memory.leaseBytes,
    })
  }
  const settings: PrefetchSettings = {
    get k() {
      return memory.k
    },
    get maxRequestBytes() {
      return isConformance ? Number.POSITIVE_INFINITY : Math.max(sizing.bytes, table.largestBytes)
    },
    get lowWater() {
      return isConformance ? -1 : memory.lowWater
    },
    inFlightPerNode: isConformance ? 1 : 2,
    isPastEnd: !isConformance,
    isStaggered: !isConformance,
    isBatched: !isConformance && options.k === 'auto',
  }
  const prefetchRoomBytes = () =>
    planPrefetchRoom({
      totalBytes: arena.totalBytes,
      bottomBytes: arena.bottom.liveBytes,
      topBytes: arena.top.liveBytes,
      reserveBytes: memory.prefetchBytes + memory.leaseBytes,
      carryBytes: options.isCarrying ? memory.carryBytes : 0,
    })

  /**
   * S_next_prefix: the first samples that the ranks here read in `epoch`. One of R machines reads a given sample in
   * 1/R of the epochs, so a prefix of R times of what Cache_next holds fills it.
   */
  const setPrefix = (epoch: number) => {
    const order = orders.find(epoch)
    if (!order) return
    const wanted = [...streams].map(([{ sequence }, { positionOf }]) => {
      const machines = sequence.globalBatch / (sequence.options.batchSize * streams.size)
      return planPrefix({
        count: sequence.itemsPerEpoch,
        sampleAt: (item) => order.sampleAt(positionOf(order, item) % positionCount),
        lengthOf: extentBytesOf,
        budgetBytes: (memory.carryBytes / streams.size) * Math.max(1, machines),
      })
    })
    carry.setPrefix(epoch, wanted.flat())
  }
  const setPrefixes = () => {
    for (const { epoch } of options.isCarrying ? streams.values() : [])
      if (carry.hasPrefix(epoch + 1)) setPrefix(epoch + 1)
  }
  const enter = async (epoch: number): Promise<void> => {
    await Promise.all([orders.get(epoch), ...(options.isCarrying ? [orders.get(epoch + 1)] : [])])
    if (options.isCarrying && !carry.hasPrefix(epoch + 1)) setPrefix(epoch + 1)
  }
  const enterEpoch = (stream: FeedStream, epoch: number): Promise<void> | undefined => {
    const state = streams.get(stream)
    if (state && state.epoch !== epoch) {
      state.epoch = epoch
      // A rank that has stopped must not keep orders and samples of past epochs for ever: it reads them again.
      const epochs = [...streams.values()].map((each) => each.epoch).filter((each) => each >= 0)
      const lowest = Math.max(Math.min(...epochs), Math.max(...epochs) - 1)
      if (lowest > lowestEpoch) {
        lowestEpoch = lowest
        for (const unused of carry.forgetBefore(lowest)) arena.finish(unused)
        orders.forgetBefore(lowest)
      } else lowestEpoch = lowest
    }
    orders.find(epoch + (options.isCarrying ? 2 : 1)) // begun now, so that the next epoch need not wait for it
    const isReady = orders.find(epoch) && (!options.isCarrying || carry.hasPrefix(epoch + 1))
    return isReady ? undefined : enter(epoch)
  }
  const wakeAll = () => {
    for (const stream of streams.keys()) stream.wake()
  }

  return {
    source,
    arena,
    counts,
    get streams() {
      return new Set(streams.keys())
    },
    memory: () => memory,
    sizing,
    nodeMeters: meters,
    carryBytesHeld: () => {
      const current = carry.bytes(lowestEpoch)
      return { current, next: carry.heldBytes() - current }
    },
    openStream({ assign = 'fixed', ...rank }, leases) {
      const sequence = planRankSequence({ ...rank, sampleCount: positionCount })
      const positionOf = planItemPositions({
        sequence,
        rule: assign,
        nodeCount,
        holderOf: layout === 'full' ? undefined : (sample) => nodeOf(sample, 0),
      })
      const plan = createStreamPlan({
        sequence,
        positionOf,
        orderOf: (epoch) => orders.find(epoch),
        nodeCount,
        nodeOf,
        extentBytesOf,
        arena,
        carry,
        carryBytes: () => memory.carryBytes,
        isEachOnce: !options.mix?.some(({ times }) => times !== 1),
        prefetchRoomBytes,
        settings,
      })
      const stream: FeedStream = createFeedStream({
        sequence,
        positionOf,
        plan,
        arena,
        source,
        enterEpoch: (epoch) => enterEpoch(stream, epoch),
        orderOf: (epoch) => orders.get(epoch),
        reserve: (sample) =>
          arena.reserveTop(extentBytesOf(sample), sample, -1) ??
          arena.reserveBottom(extentBytesOf(sample), sample, -1, true),
        nodeOf,
        async copyInArena(copies) {
          const placesOf = (end: 'from' | 'to') =>
            Float64Array.from(copies, (copy) => ARENA_BASE + arena.offsetOf(copy[end]))
          const [from, to] = [placesOf('from'), placesOf('to')]
          const lengths = Float64Array.from(copies, (copy) => table.lengths[copy.slot.sample]!)
          const bytes = lengths.reduce((sum, length) => sum + length, 0)
          counts.copiedBytes += bytes
          if (bytes > COPY_HERE_BYTES) await pool.run({ kind: 'copy', from, to, lengths })
          else for (const [i, length] of lengths.entries()) arenaFile.move(from[i]!, to[i]!, length)
        },
        onFreed: wakeAll,
        nowMs: options.nowMs,
        isStrict: isConformance,
        roomTimeoutMs: options.roomTimeoutMs ?? 10_000,
      })
      streams.set(stream, { leases, epoch: -1, positionOf })
      replan()
      if (!memory.isFeasible) {
        streams.delete(stream)
        replan()
        throw new DscError(
          'FEED_MEMORY',
          `the feed has ${arenaFile.bytes} bytes, but one batch of ${formatCount(rank.batchSize, 'sample')} needs ${memory.leastBytes}`,
          { hint: `dsc feed serve --memory ${Math.ceil((4 * memory.leastBytes) / 2 ** 20)}MiB` },
        )
      }
      setPrefixes()
      return stream
    },
    allowLeases(stream, leases) {
      const state = streams.get(stream)
      if (!state || state.leases >= leases) return
      state.leases = leases
      replan()
    },
    closeStream(stream) {
      stream.close()
      streams.delete(stream)
      replan()
    },
    async close() {
      for (const stream of streams.keys()) stream.close()
      streams.clear()
      await source.close()
      await pool.close()
      arenaFile.close()
    },
  }
}
