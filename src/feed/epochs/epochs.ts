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
  /** The epoch that is read first, as far as is known. Default 0. */
  readonly firstEpoch?: number | undefined
}

/** Places of a list of past samples that are looked at per batch: 0.1 ms, or 3 ms where each has a sample. */
const PLACES_AT_ONCE = 2 ** 16

/**
 * Which epochs the ranks of this machine are in. What an epoch needs before its first batch is made while the one
 * before it runs, and not by the feed's thread: its order, and which samples it keeps for the epoch after it.
 */
export class Epochs {
  readonly carry: CarryOver
  readonly orders: OrderBook
  readonly #options: EpochsOptions
  /** Rank → its epoch; −1 before it has read. */
  readonly #ranks = new Map<RankItems, number>()
  /** The prefixes that are being made, or are there, by epoch. */
  readonly #prefixes = new Map<number, Promise<void>>()
  #lowest = 0

  constructor(options: EpochsOptions) {
    this.#options = options
    this.orders = options.orders
    this.carry = new CarryOver(options.arena.space.extents)
    void this.ready().catch(() => {}) // who waits for it hears why
  }

  /** The first epoch of which anything is kept. */
  get lowest(): number {
    return this.#lowest
  }

  join(items: RankItems): void {
    this.#ranks.set(items, -1)
  }

  leave(items: RankItems): void {
    this.#ranks.delete(items)
  }

  /** Resolves when what the first batch of a feed needs is there. */
  async ready(): Promise<void> {
    const { firstEpoch = 0, isCarrying } = this.#options
    await Promise.all([this.orders.get(firstEpoch), ...(isCarrying ? [this.orders.get(firstEpoch + 1)] : [])])
  }

  /** Resolves when it is known what `epoch` keeps for the one after it; undefined when it is, or none is kept. */
  whenKeptIsKnown(epoch: number): Promise<void> | undefined {
    const next = epoch + 1
    const isKnown = !this.#options.isCarrying || next < this.#lowest || this.carry.hasPrefix(next)
    return isKnown ? undefined : this.#beginPrefix(next)
  }

  /**
   * Says that a rank reads `epoch` now. Resolves when its order is there; undefined when it is. What it keeps for the
   * next one need not be known before its first batch is given back.
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
    if (isCarrying) for (const next of [epoch + 1, epoch + 2]) this.#beginPrefix(next)
    else orders.find(epoch + 1)
    return needed
  }

  /** For who finds no room: gives back all that nobody used of past epochs. Returns whether there was any. */
  freeAllUnused(): boolean {
    return this.#freeUnused(Number.POSITIVE_INFINITY)
  }

  /**
   * Fits prefixes to the room that Cache_next has now: those of the epochs that ranks keep samples for, and of all
   * after them; with `isLater` only of those after.
   */
  replanPrefixes({ isLater = false } = {}): void {
    const epochs = [...this.#ranks.values()].filter((each) => each >= 0)
    const first = isLater ? Math.max(...epochs) + 2 : Math.min(...epochs) + 1
    for (const epoch of this.#prefixes.keys()) if (epoch >= first) this.#makePrefix(epoch)
  }

  /** A rank that has stopped must not keep orders and samples of past epochs for ever: it reads them again. */
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

  /** Makes the prefix of `epoch`; the one before it, if any, counts until then. */
  #makePrefix(epoch: number): Promise<void> {
    const made = this.#planPrefix(epoch).then((prefix) => {
      if (this.#prefixes.get(epoch) === made) this.carry.setPrefix(epoch, prefix)
    })
    made.catch(() => {
      if (this.#prefixes.get(epoch) !== made) return
      this.#prefixes.delete(epoch) // asked again, a reader may succeed
      this.carry.giveUpPrefix(epoch)
    })
    this.carry.expectPrefix(epoch)
    this.#prefixes.set(epoch, made)
    return made
  }

  /**
   * S_next_prefix: the first samples that the ranks here read in `epoch`. One of R machines reads a given sample in
   * 1/R of the epochs, so a prefix of R times of what Cache_next holds fills it.
   */
  async #planPrefix(epoch: number): Promise<Prefix> {
    const { arena, pool, lengths } = this.#options
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
