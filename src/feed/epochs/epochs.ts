import { setImmediate as nextTurn } from 'node:timers/promises'
import type { SampleArena } from '../arena/sample-arena.js'
import type { Prefix } from '../plan/prefix.js'
import type { ReaderPool } from '../threads/reader-pool.js'
import { CarryOver } from './carry-over.js'
import type { OrderBook } from './order-book.js'
import type { RankItems } from './rank-items.js'

interface EpochsOptions {
  readonly orders: OrderBook
  readonly arena: Pick<SampleArena, 'carryBytes'> & {
    readonly space: Pick<SampleArena['space'], 'extents' | 'finish'>
  }
  readonly pool: ReaderPool
  /** Bytes of every sample of the dataset, in memory that threads share. */
  readonly lengths: Uint32Array
  /** Whether samples are kept for the next epoch (seed 001). */
  readonly isCarrying: boolean
  /** The first epoch to read, if known. Default 0. */
  readonly firstEpoch?: number | undefined
}

/** Places of a past list to check per batch: 0.1 ms, or 3 ms if each has a sample. */
const PLACES_AT_ONCE = 2 ** 16

/**
 * Tracks which epochs the ranks of this machine are in. While one epoch runs, other threads than the feed's prepare
 * what the next needs before its first batch: its order, and which samples it keeps for the epoch after it.
 */
export class Epochs {
  readonly carry: CarryOver
  readonly orders: OrderBook
  readonly #options: EpochsOptions
  /** Rank → its epoch; −1 before its first read. */
  readonly #ranks = new Map<RankItems, number>()
  /** Prefixes made or being made, by epoch. */
  readonly #prefixes = new Map<number, Promise<void>>()
  #lowest = 0

  constructor(options: EpochsOptions) {
    this.#options = options
    this.orders = options.orders
    this.carry = new CarryOver(options.arena.space.extents)
    void this.ready().catch(() => {}) // callers that wait for it get the reason
  }

  /** The oldest epoch with anything kept. */
  get lowest(): number {
    return this.#lowest
  }

  join(items: RankItems): void {
    this.#ranks.set(items, -1)
  }

  leave(items: RankItems): void {
    this.#ranks.delete(items)
  }

  /** Resolves when everything the first batch of a feed needs is ready. */
  async ready(): Promise<void> {
    await this.orders.get(this.#options.firstEpoch ?? 0)
  }

  /**
   * Resolves when it is known which samples `epoch` keeps for the next; undefined if it already is, or none are kept.
   */
  whenKeptIsKnown(epoch: number): Promise<void> | undefined {
    const next = epoch + 1
    const isKnown = !this.#options.isCarrying || next < this.#lowest || this.carry.hasPrefix(next)
    return isKnown ? undefined : this.#beginPrefix(next)
  }

  /**
   * Records that a rank reads `epoch` now. Resolves when its order is ready; undefined if it already is. Which samples
   * it keeps for the next epoch need not be known before its first batch is given back. Where none are kept, a thread
   * makes the next order from a later turn on: the first batch would wait for a processor.
   */
  enter(items: RankItems, epoch: number): Promise<void> | undefined {
    const { orders } = this
    const { isCarrying } = this.#options
    const known = this.#ranks.get(items)
    if (known !== undefined && known !== epoch) {
      this.#ranks.set(items, epoch)
      this.#forgetPast()
    }
    this.#freeUnused(PLACES_AT_ONCE)
    const needed = orders.find(epoch) ? undefined : orders.get(epoch).then(() => {})
    if (isCarrying) for (const next of [epoch + 1, epoch + 2]) void this.#beginPrefix(next)
    else if (known !== epoch) void nextTurn().then(() => orders.find(epoch + 1))
    return needed
  }

  /** Frees every unused sample of past epochs; call it when the arena is full. Returns whether there were any. */
  freeAllUnused(): boolean {
    return this.#freeUnused(Number.POSITIVE_INFINITY)
  }

  /**
   * Fits prefixes to the room that Cache_next has now: those of the epochs that ranks keep samples for, and of all
   * later ones. With `isLater`, only the later ones.
   */
  replanPrefixes({ isLater = false } = {}): void {
    const epochs = [...this.#ranks.values()].filter((each) => each >= 0)
    const first = isLater ? Math.max(...epochs) + 2 : Math.min(...epochs) + 1
    for (const epoch of this.#prefixes.keys()) if (epoch >= first) void this.#makePrefix(epoch)
  }

  /** A stopped rank must not hold orders and samples of past epochs forever: it reads them again. */
  #forgetPast(): void {
    const { orders } = this
    const epochs = [...this.#ranks.values()].filter((each) => each >= 0)
    const lowest = Math.max(Math.min(...epochs), Math.max(...epochs) - 1)
    if (lowest > this.#lowest) {
      this.carry.forgetBefore(lowest)
      orders.forgetBefore(lowest)
      for (const old of this.#prefixes.keys()) if (old < lowest) this.#prefixes.delete(old)
    }
    this.#lowest = lowest
  }

  #freeUnused(places: number): boolean {
    const unused = this.carry.takeUnused(places)
    for (const extent of unused) this.#options.arena.space.finish(extent)
    return unused.length > 0
  }

  #beginPrefix(epoch: number): Promise<void> {
    return this.#prefixes.get(epoch) ?? this.#makePrefix(epoch)
  }

  /** Makes the prefix of `epoch`; an earlier prefix of it counts until then. */
  #makePrefix(epoch: number): Promise<void> {
    const made = this.#planPrefix(epoch).then((prefix) => {
      if (this.#prefixes.get(epoch) === made) this.carry.setPrefix(epoch, prefix)
    })
    made.catch(() => {
      if (this.#prefixes.get(epoch) !== made) return
      this.#prefixes.delete(epoch) // a retry may succeed
      this.carry.giveUpPrefix(epoch)
    })
    this.carry.expectPrefix(epoch)
    this.#prefixes.set(epoch, made)
    return made
  }

  /**
   * Plans S_next_prefix: the first samples that the ranks here read in `epoch`. One of R machines reads a given sample
   * in 1/R of the epochs, so a prefix of R times the size of Cache_next fills it. Threads get this after the reads of
   * the turn in which it is asked for: a first batch would wait for it.
   */
  async #planPrefix(epoch: number): Promise<Prefix> {
    const { arena, pool, lengths } = this.#options
    await nextTurn()
    const { visits, mix } = await this.orders.dataOf(epoch)
    const shares = Array.from(this.#ranks.keys(), ({ assignment }) => {
      const { globalBatch, options } = assignment.sequence
      const machines = Math.max(1, globalBatch / (options.batchSize * this.#ranks.size))
      return { assignment, roomBytes: (arena.carryBytes / this.#ranks.size) * machines }
    })
    const result = await pool.run({ kind: 'prefix', visits, mix, lengths, shares })
    if (result.kind !== 'prefix') throw new Error('a reader thread answered another question')
    return result.prefix
  }
}
