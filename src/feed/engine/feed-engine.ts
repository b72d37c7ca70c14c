import { Closers } from '../../failure/closers.js'
import { DscError } from '../../failure/dsc-error.js'
import { formatCount } from '../../model/format-count.js'
import type { SampleGroups } from '../../samples/plan/sample-groups.js'
import type { SampleSource } from '../../samples/sample-source.js'
import type { SampleTable } from '../../samples/sample-table.js'
import type { ArenaFile } from '../arena/arena-file.js'
import { planSampleRoom } from '../arena/arena-runs.js'
import type { EvictionMode } from '../arena/arena-space.js'
import { SampleArena } from '../arena/sample-arena.js'
import { Epochs } from '../epochs/epochs.js'
import { OrderBook } from '../epochs/order-book.js'
import { RankItems } from '../epochs/rank-items.js'
import type { MappedSamples } from '../mapped/mapped-samples.js'
import { MappedStream } from '../mapped/mapped-stream.js'
import { type ArenaBudget, planArenaBudget } from '../plan/arena-budget.js'
import type { AssignRule } from '../plan/assignment.js'
import type { FeedState } from '../plan/feed-state.js'
import { countMixed, type MixPart } from '../plan/mix.js'
import type { OrderKind } from '../plan/order.js'
import { planRankSequence, type RankOptions } from '../plan/rank-sequence.js'
import type { RequestTiming } from '../plan/request-cost.js'
import { MeteredSource } from '../sources/metered-source.js'
import type { BatchStream } from '../stream/batch-stream.js'
import type { LeasedBatch } from '../stream/leased-batch.js'
import { RankStream } from '../stream/rank-stream.js'
import type { PrefetchSettings } from '../stream/request-plan.js'
import type { ReaderPool } from '../threads/reader-pool.js'
import { RequestSizing, type RequestSizingOptions } from './request-sizing.js'

interface FeedEngineOptions extends RequestSizingOptions {
  readonly source: SampleSource
  /** Compared between states if the table has no fingerprint. */
  readonly listing?: string | undefined
  /** Files that clients map; the arena then stays empty. */
  readonly mapped?: MappedSamples | undefined
  readonly pool: ReaderPool
  readonly arenaFile: ArenaFile
  readonly seed: number
  /** The first epoch to read. Default 0. */
  readonly firstEpoch?: number | undefined
  readonly orderKind: OrderKind
  /** For orders through groups. */
  readonly groups?: SampleGroups | undefined
  /** The parts of the samples and how often an epoch visits them; without it, every sample once. */
  readonly mix?: readonly MixPart[] | undefined
  readonly eviction: EvictionMode
  /** Whether samples are kept for the next epoch (seed 001). */
  readonly isCarrying: boolean
  readonly nowMs: () => number
  /** How long a sample waits for room before it fails. Default 10 s. */
  readonly roomTimeoutMs?: number | undefined
}

/** How a rank reads. `assign` is 'fixed' by default. */
export interface StreamShape extends Omit<RankOptions, 'sampleCount'> {
  readonly assign?: AssignRule
}

/** A rank of this machine. */
interface EngineRank {
  readonly items: RankItems
  /** Number of batches that its clients may hold at once. */
  leases: number
}

/** The sole owner of a training node's feed memory: streams of batches, one per rank, over one arena. */
export class FeedEngine {
  readonly source: MeteredSource
  readonly arena: SampleArena
  readonly sizing: RequestSizing
  readonly #options: FeedEngineOptions
  readonly #epochs: Epochs
  readonly #ranks = new Map<BatchStream, EngineRank>()
  readonly #settings: PrefetchSettings
  readonly #closers: (() => Promise<void>)[] = []

  constructor(options: FeedEngineOptions) {
    const { arenaFile, pool, seed, groups, mix, nowMs } = options
    const { table } = options.source
    this.#options = options
    this.sizing = new RequestSizing(options)
    this.source = new MeteredSource(options.source, { nowMs, onTimed: (timing) => this.#learn(timing) })
    this.arena = new SampleArena({
      file: arenaFile,
      table,
      copyAside: (copy) => pool.run({ kind: 'copy', ...copy }),
      eviction: options.eviction,
      isCarrying: options.isCarrying,
      budget: this.#planBudget(),
    })
    const kind = options.orderKind
    const orders = new OrderBook({ positionCount: this.positionCount, seed, kind, groups, mix, pool })
    this.#epochs = new Epochs({
      orders,
      arena: this.arena,
      pool,
      lengths: table.lengths,
      isCarrying: options.isCarrying,
      firstEpoch: options.firstEpoch,
    })
    this.#settings = this.#prefetchSettings()
  }

  /** Undefined if samples lie in the arena. */
  get mapped(): MappedSamples | undefined {
    return this.#options.mapped
  }

  /** Memory for samples, in the arena or read ahead in the kernel's memory. Bytes. */
  get memoryBytes(): number {
    return this.#options.mapped?.touch.memoryBytes ?? this.arena.file.bytes
  }

  /** Copies a sample of a leased batch to `target`, which must have the sample's length. */
  readSample(batch: LeasedBatch, place: number, target: Uint8Array): void {
    if (this.mapped) this.mapped.files.read(batch.slots[place]!.sample, target)
    else this.arena.file.read(target, batch.offsets[place]!)
  }

  get table(): SampleTable {
    return this.source.table
  }

  get seed(): number {
    return this.#options.seed
  }

  get orderKind(): OrderKind {
    return this.#options.orderKind
  }

  /** Identity of the samples, as states record it. */
  get samplesIdentity(): Pick<FeedState, 'fingerprint' | 'listing'> {
    return { fingerprint: this.table.fingerprint || null, listing: this.#options.listing ?? null }
  }

  /** The mix as states record it. */
  get mix(): FeedState['mix'] {
    const { mix } = this.#options
    return mix ? Object.fromEntries(mix.map(({ name, times }) => [name, times])) : null
  }

  /** Number of samples that an epoch visits, counting every visit. */
  get positionCount(): number {
    return this.#options.mix ? countMixed(this.#options.mix) : this.table.count
  }

  get streams(): Iterable<BatchStream> {
    return this.#ranks.keys()
  }

  get budget(): ArenaBudget {
    return this.arena.budget
  }

  /** Bytes of Cache_next: kept for the running epoch, and for the one after it. */
  get carryBytesHeld(): { readonly current: number; readonly next: number } {
    const { carry, lowest } = this.#epochs
    const current = carry.bytes(lowest)
    return { current, next: carry.heldBytes() - current }
  }

  /** Resolves when the first batch no longer has to wait for the order of the samples. */
  ready(): Promise<void> {
    return this.#epochs.ready()
  }

  /** Opens the stream of a rank. `leases`: number of batches that its clients may hold at once. */
  openStream({ assign = 'fixed', ...rank }: StreamShape, leases: number): BatchStream {
    const sequence = planRankSequence({ ...rank, sampleCount: this.positionCount })
    const isEachOnce = !this.#options.mix?.some(({ times }) => times !== 1)
    const { source, arena } = this
    const orders = this.#epochs.orders
    const items = new RankItems({ sequence, rule: assign, placed: source, orders, isEachOnce })
    const { mapped, nowMs } = this.#options
    const shared = { items, epochs: this.#epochs, source, nowMs }
    const stream = mapped
      ? new MappedStream({ ...shared, touch: mapped.touch, countRanks: () => this.#ranks.size })
      : new RankStream({
          ...shared,
          arena,
          settings: this.#settings,
          siblings: { [Symbol.iterator]: () => this.#ranks.keys() },
          isStrict: this.#options.isConformance,
          roomTimeoutMs: this.#options.roomTimeoutMs ?? 10_000,
        })
    this.#add(stream, { items, leases })
    return stream
  }

  /** Makes room for clients of the stream to hold up to `leases` batches. */
  allowLeases(stream: BatchStream, leases: number): void {
    const rank = this.#ranks.get(stream)
    if (!rank || rank.leases >= leases) return
    rank.leases = leases
    this.arena.share(this.#planBudget())
  }

  closeStream(stream: BatchStream): void {
    stream.close()
    this.#remove(stream)
  }

  /** Adds something for `close` to end last, in the order of these calls. */
  onClose(closer: () => Promise<void>): void {
    this.#closers.push(closer)
  }

  async close(): Promise<void> {
    const { pool, arenaFile } = this.#options
    for (const stream of this.#ranks.keys()) stream.close()
    this.#ranks.clear()
    const closers = new Closers()
    for (const closer of this.#closers.splice(0).reverse()) closers.add(closer)
    closers.add(() => this.mapped?.files.close())
    closers.add(() => arenaFile.close())
    closers.add(() => pool.close())
    closers.add(() => this.source.close())
    await closers.close()
  }

  #add(stream: BatchStream, rank: EngineRank): void {
    this.#ranks.set(stream, rank)
    this.#epochs.join(rank.items)
    if (this.mapped) return // its samples do not lie in the arena
    this.arena.share(this.#planBudget())
    const { isFeasible, leastBytes } = this.budget
    if (!isFeasible) {
      stream.close()
      this.#remove(stream)
      const batch = formatCount(rank.items.sequence.options.batchSize, 'sample')
      throw new DscError(
        'FEED_MEMORY',
        `the feed has ${this.arena.file.bytes} bytes, but one batch of ${batch} needs ${leastBytes}`,
        { hint: `dsc feed serve --memory ${Math.ceil((4 * leastBytes) / 2 ** 20)}MiB` },
      )
    }
    this.#epochs.replanPrefixes()
  }

  #remove(stream: BatchStream): void {
    const rank = this.#ranks.get(stream)
    if (rank) this.#epochs.leave(rank.items)
    this.#ranks.delete(stream)
    this.arena.share(this.#planBudget())
  }

  /** Learns the cost of requests from an answer. */
  #learn(timing: RequestTiming): void {
    this.sizing.add(timing)
    if (!this.sizing.fit(this.#epochs.lowest)) return
    const { carryBytes } = this.budget
    this.arena.share(this.#planBudget())
    // More room counts from the next epoch on: samples that this one gave up are gone.
    this.#epochs.replanPrefixes({ isLater: this.budget.carryBytes >= carryBytes })
  }

  #planBudget(): ArenaBudget {
    const { table, nodeCount } = this.source
    return planArenaBudget({
      memoryBytes: this.#options.arenaFile.bytes,
      ...planSampleRoom(table),
      sampleCount: table.count,
      nodeCount,
      ranks: Array.from(this.#ranks.values(), ({ items, leases }) => ({
        batchSize: items.sequence.options.batchSize,
        leases,
      })),
      k: this.#options.k,
      requestBytes: this.sizing.bytes,
      isConformance: this.#options.isConformance,
    })
  }

  /** The settings that streams follow; they track the budget and the measurements. */
  #prefetchSettings(): PrefetchSettings {
    const { isConformance, k } = this.#options
    const { arena, sizing, table } = this
    return {
      get k() {
        return arena.budget.k
      },
      get maxRequestBytes() {
        return isConformance ? Number.POSITIVE_INFINITY : Math.max(sizing.bytes, table.largestBytes)
      },
      get lowWater() {
        return arena.budget.lowWater
      },
      inFlightPerNode: isConformance ? 1 : 2,
      isPastEnd: !isConformance,
      isStaggered: !isConformance,
      isBatched: !isConformance && k === 'auto',
    }
  }
}
