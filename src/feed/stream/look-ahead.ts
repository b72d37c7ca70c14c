import type { CarryOver } from '../epochs/carry-over.js'
import type { RankItem, RankItems } from '../epochs/rank-items.js'
import type { PrefetchLists } from './prefetch-lists.js'
import { openSlot, type Slot } from './slot.js'

/** Reading position of a rank's clients, in serials. */
export interface ReadingPlace {
  /** Where reading began: 0, or where it was last repositioned to. */
  start: number
  /** One past the last item that a client has taken. */
  frontier: number
  /** Number of items that clients wait for or hold, or that are being copied into Cache_next. */
  unreleased: number
  /** Of these, the ones being copied: they have no slot any more. */
  copied: number
}

interface LookAheadOptions {
  readonly items: RankItems
  readonly carry: CarryOver
  /** Number of samples in one request, and whether lists run on into the next epoch. */
  readonly settings: { readonly k: number; readonly isPastEnd: boolean }
  readonly place: Readonly<ReadingPlace>
  readonly lists: PrefetchLists
  readonly slots: Map<number, Slot>
}

/** Number of items to look at in one go, for all nodes together: 1 ms. */
const LOOKED_AT_ONCE = 4096

/** Brings the items of the rank's sequence into view one by one, and appends them to the list of their node. */
export class LookAhead {
  readonly #options: LookAheadOptions
  /** Every item below this serial has been in view. */
  #scanned = 0
  /** Samples of a mix that Cache_next holds for an item in view; the epoch may visit them again. */
  readonly #claimed = { epoch: -1, samples: new Set<number>() }
  /** Samples that the running epoch will leave in Cache_next → the items skipped for that. */
  readonly #promised = { epoch: -1, items: new Map<number, RankItem>() }

  constructor(options: LookAheadOptions) {
    this.#options = options
  }

  /** Makes the slot of the item at `serial`, not yet requested. Throws while the order of its epoch is being made. */
  makeSlot(serial: number): Slot {
    const item = this.#options.items.find(serial)
    if (!item) throw new Error(`the order of item ${serial} is not there yet`)
    return openSlot(item)
  }

  /** Brings every item up to `serial` into view, as far as orders are ready. */
  reach(serial: number): void {
    while (this.#scanned <= serial && this.#scan()) {}
  }

  /** Looks ahead until the list of `node` has `count` entries. Returns whether it does. */
  fillList(node: number, count: number): boolean {
    const { lists, items, settings, place, slots } = this.#options
    const { nodeCount } = items.placed
    // Bounds what a search for one node puts on the lists of others, as in a skewed layout. Kept samples are on none, so
    // the few that the epoch before left out are found between them, however far apart.
    const mostAhead = 4 * nodeCount * (settings.k + 16)
    const limit = this.#scanned + Math.max(count, LOOKED_AT_ONCE / nodeCount)
    while (lists.waiting(node) < count && this.#scanned < limit) {
      const isNear = this.#scanned < place.frontier + mostAhead
      const isRunning = this.#hasBegun(items.epochOf(this.#scanned)) // before, each promise is noted
      const ahead = slots.size - (place.unreleased - place.copied)
      if (!isNear && !(isRunning && ahead < mostAhead)) break
      if (!this.#scan()) break
    }
    return lists.waiting(node) >= count
  }

  /** Whether Cache_next holds this item's sample, and for no other item in view. */
  claimKept({ epoch, sample }: RankItem): boolean {
    const { carry, items } = this.#options
    if (!carry.holds(epoch, sample)) return false
    if (items.isEachOnce) return true
    if (this.#claimed.epoch !== epoch) {
      this.#claimed.epoch = epoch
      this.#claimed.samples.clear()
    }
    if (this.#claimed.samples.has(sample)) return false
    this.#claimed.samples.add(sample)
    return true
  }

  /** Requests a sample of `epoch` after all, because Cache_next has no room for it (it shrinks when requests grow). */
  breakPromise(epoch: number, sample: number): void {
    const { lists, slots, place } = this.#options
    const item = this.#promised.epoch === epoch ? this.#promised.items.get(sample) : undefined
    // Items not in view yet will come into view; items that a client asked for are already on their way.
    if (!item || item.serial >= this.#scanned || item.serial < place.frontier) return
    slots.set(item.serial, openSlot(item))
    lists.restore(item.node, item.serial)
  }

  /** Moves back to `serial`. */
  moveBack(serial: number): void {
    this.#scanned = serial
    this.#claimed.samples.clear()
  }

  /** Moves on to `serial`, unless already further. */
  moveOn(serial: number): void {
    this.moveBack(Math.max(this.#scanned, serial))
  }

  /** Brings one more item into view. Returns whether it did. */
  #scan(): boolean {
    const { items, lists, slots } = this.#options
    if (!this.#maySee(items.epochOf(this.#scanned))) return false
    const item = items.find(this.#scanned)
    if (!item) return false
    if (this.#isHiddenUntilEnd(item.epoch)) return false
    this.#scanned++
    // A sample that Cache_next has or will have needs no entry until a client takes it.
    if (this.claimKept(item)) return true
    if (this.#isPromised(item)) {
      this.#notePromise(item)
      return true
    }
    slots.set(item.serial, openSlot(item))
    lists.append(item.node, item.serial)
    return true
  }

  #notePromise(item: RankItem): void {
    const promised = this.#promised
    if (promised.epoch !== item.epoch) {
      promised.epoch = item.epoch
      promised.items.clear()
    }
    promised.items.set(item.sample, item)
  }

  /** Whether lists may run into `epoch` now. */
  #maySee(epoch: number): boolean {
    const { items, place, settings } = this.#options
    const last = place.frontier === place.start ? place.frontier : place.frontier - 1
    const running = items.epochOf(last)
    return epoch <= running || (settings.isPastEnd && epoch === running + 1)
  }

  /** Whether to stop looking ahead at `epoch`: what it finds in Cache_next is unknown until the previous epoch ends. */
  #isHiddenUntilEnd(epoch: number): boolean {
    const { carry } = this.#options
    if (this.#hasBegun(epoch)) return false
    return carry.isAwaited(epoch) || (carry.prefixSize(epoch) > 0 && !this.#canPromise(epoch))
  }

  /** Whether all of the previous epoch has been read and given back. */
  #hasBegun(epoch: number): boolean {
    const { items, place } = this.#options
    const start = epoch * items.sequence.itemsPerEpoch
    return place.frontier > start || (place.frontier === start && place.unreleased === 0)
  }

  /**
   * Whether a sample of a future epoch will be in Cache_next by then, so that requesting it would be a waste. Only a
   * rank that alone reads every sample, and has read the previous epoch from its start, can promise that.
   */
  #isPromised({ epoch, sample }: RankItem): boolean {
    const { carry, items, place } = this.#options
    if (!carry.isWanted(epoch, sample)) return false
    const isComplete = place.frontier >= epoch * items.sequence.itemsPerEpoch && place.unreleased === 0
    return !isComplete && this.#canPromise(epoch) && !items.leftOutOf(epoch - 1).has(sample)
  }

  #canPromise(epoch: number): boolean {
    const { items, place } = this.#options
    return items.isAlone && place.start <= (epoch - 1) * items.sequence.itemsPerEpoch
  }
}
