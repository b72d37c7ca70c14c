import type { ItemPositions } from './assignment.js'
import type { CarryOver } from './carry-over.js'
import type { EpochOrder } from './order.js'
import type { PrefetchLists } from './prefetch-lists.js'
import type { RankSequence } from './rank-sequence.js'
import type { Slot } from './slot.js'

/** Where the clients of a rank are, in serials. */
export interface ReadingPlace {
  /** Where the reading began: 0, or where it was last repositioned to. */
  start: number
  /** Behind the last item that a client has taken. */
  frontier: number
  /** Items that clients wait for or hold, and items that are being copied into Cache_next. */
  unreleased: number
}

export interface LookAheadOptions {
  readonly sequence: RankSequence
  readonly positionOf: ItemPositions
  /** The order of an epoch, or undefined while it is being made. */
  readonly orderOf: (epoch: number) => EpochOrder | undefined
  readonly nodeCount: number
  readonly nodeOf: (sample: number, position: number) => number
  readonly carry: CarryOver
  /** Whether each epoch visits each sample once, as it does without a mix. */
  readonly isEachOnce: boolean
  /** Samples in one request, and whether lists run on into the next epoch. */
  readonly settings: { readonly k: number; readonly isPastEnd: boolean }
  readonly place: Readonly<ReadingPlace>
  readonly lists: PrefetchLists
  readonly slots: Map<number, Slot>
}

/** Brings the items of the rank's sequence into view, one after the other, and onto the list of their node. */
export interface LookAhead {
  /** The item at `serial`, not yet asked for. Throws while the order of its epoch is being made. */
  makeSlot(serial: number): Slot
  /** Brings every item up to `serial` into view, as far as orders are there. */
  reach(serial: number): void
  /** Looks ahead until the list of `node` has `count` entries. Returns whether it has them. */
  fillList(node: number, count: number): boolean
  /** Whether Cache_next holds the sample of this item, and for no other item that is in view. */
  claimKept(slot: Slot): boolean
  /** Goes on from `serial`, or from where it is if that is further and `isBackward` is false. */
  moveTo(serial: number, isBackward: boolean): void
}

export function createLookAhead(options: LookAheadOptions): LookAhead {
  const { sequence, carry, settings, nodeCount, place, lists, slots } = options
  const { itemsPerEpoch } = sequence
  const { sampleCount } = sequence.options
  let scanned = 0
  /** Samples of a mix that Cache_next holds for an item in view; the epoch may visit them again. */
  const claimed = { epoch: -1, samples: new Set<number>() }
  let leftOut: { epoch: number; samples: ReadonlySet<number> } = { epoch: -1, samples: new Set() }

  const makeSlotOf = (serial: number, order: EpochOrder): Slot => {
    const epoch = Math.floor(serial / itemsPerEpoch)
    const position = options.positionOf(order, serial - epoch * itemsPerEpoch)
    const sample = order.sampleAt(position % sampleCount)
    return {
      serial,
      epoch,
      position,
      sample,
      node: options.nodeOf(sample, position),
      state: 'waiting',
      isWanted: false,
      isAhead: false,
      extent: undefined,
    }
  }

  /** Samples that no rank reads in `epoch`, because they do not fill a last batch. */
  const samplesLeftOut = (epoch: number): ReadonlySet<number> => {
    if (leftOut.epoch === epoch) return leftOut.samples
    const samples = new Set<number>()
    const order = options.orderOf(epoch)
    for (let position = sequence.stepsPerEpoch * sequence.globalBatch; position < sampleCount; position++)
      if (order) samples.add(order.sampleAt(position))
    leftOut = { epoch, samples }
    return samples
  }

  /**
   * Whether a sample of an epoch to come will be in Cache_next by then, so that asking for it would be a waste.
   * Only a rank that alone reads every sample, and has read this epoch from its start, can promise that.
   */
  const isPromised = (slot: Slot): boolean => {
    if (!carry.isWanted(slot.epoch, slot.sample)) return false
    const isComplete = place.frontier >= slot.epoch * itemsPerEpoch && place.unreleased === 0
    return !isComplete && canPromise(slot.epoch) && !samplesLeftOut(slot.epoch - 1).has(slot.sample)
  }
  const canPromise = (epoch: number) => isAlone && place.start <= (epoch - 1) * itemsPerEpoch
  const isAlone = options.isEachOnce && sequence.globalBatch === sequence.options.batchSize

  const claimKept = (slot: Slot): boolean => {
    if (!carry.holds(slot.epoch, slot.sample)) return false
    if (options.isEachOnce) return true
    if (claimed.epoch !== slot.epoch) {
      claimed.epoch = slot.epoch
      claimed.samples.clear()
    }
    if (claimed.samples.has(slot.sample)) return false
    claimed.samples.add(slot.sample)
    return true
  }

  /** Brings one more item into view. Returns whether there was one. */
  const scan = (): boolean => {
    const { start, frontier, unreleased } = place
    const epoch = Math.floor(scanned / itemsPerEpoch)
    const running = Math.floor((frontier === start ? frontier : frontier - 1) / itemsPerEpoch)
    if (epoch > running && (!settings.isPastEnd || epoch > running + 1)) return false
    const order = options.orderOf(epoch)
    if (!order) return false
    // What the running epoch will leave in Cache_next is not known before its end, so the look ahead stops there.
    const epochStart = epoch * itemsPerEpoch
    const isBeforeEnd = frontier < epochStart || (frontier === epochStart && unreleased > 0)
    if (isBeforeEnd && carry.prefixSize(epoch) > 0 && !canPromise(epoch)) return false
    const slot = makeSlotOf(scanned++, order)
    slots.set(slot.serial, slot)
    if (claimKept(slot) || isPromised(slot)) slot.state = 'expected'
    else lists.append(slot.node, slot.serial)
    return true
  }

  return {
    makeSlot(serial) {
      const order = options.orderOf(Math.floor(serial / itemsPerEpoch))
      if (!order) throw new Error(`the order of item ${serial} is not there yet`)
      return makeSlotOf(serial, order)
    },
    reach(serial) {
      while (scanned <= serial && scan()) {}
    },
    fillList(node, count) {
      const limit = scanned + 4 * nodeCount * (settings.k + 16) // a skewed layout must not scan an epoch
      while (lists.waiting(node) < count && scanned < limit) if (!scan()) break
      return lists.waiting(node) >= count
    },
    claimKept,
    moveTo(serial, isBackward) {
      if (isBackward || scanned < serial) scanned = serial
      claimed.samples.clear()
    },
  }
}
