import type { ArenaPlan } from './arena-plan.js'
import type { Extent } from './arena-zone.js'
import type { CarryOver } from './carry-over.js'
import type { EpochOrder } from './order.js'
import { createPrefetchLists } from './prefetch-lists.js'
import { positionOfItem, type RankSequence } from './rank-sequence.js'

/** When samples are asked for, and how many at a time. */
export interface PrefetchSettings {
  /** Samples in one request at most. */
  readonly k: number
  /** Bytes in one request at most; its first sample always goes. */
  readonly maxRequestBytes: number
  /** Asks again for a list when at most this many of its samples are ready or on their way; −1 = only on a miss. */
  readonly lowWater: number
  /** Low-water requests on their way to one node at most. A miss is never held back. */
  readonly inFlightPerNode: number
  /** Whether lists run on into the next epoch. */
  readonly isPastEnd: boolean
  /** Whether the first requests differ in length, so that the lists do not all run out together. */
  readonly isStaggered: boolean
}

/** Where one item of the rank's sequence stands. Its serial is epoch · itemsPerEpoch + item. */
export interface Slot {
  readonly serial: number
  readonly epoch: number
  readonly position: number
  readonly sample: number
  readonly node: number
  /**
   * waiting: on a prefetch list · expected: Cache_next has or will have it · inflight · ready · leased ·
   * failed: no source could give it · dropped: nobody wants it any more.
   */
  state: 'waiting' | 'expected' | 'inflight' | 'ready' | 'leased' | 'failed' | 'dropped'
  /** A client waits for this item, or has it. */
  isWanted: boolean
  /** Counted in the ready-and-inflight number of its list. */
  isAhead: boolean
  extent: Extent | undefined
}

/** One message to one storage node: the missed sample, if any, first. */
export interface SampleRequest {
  readonly node: number
  readonly slots: readonly Slot[]
  readonly isMiss: boolean
}

/** What a client's item turned out to be. `blocked`: a miss without room; ask again after a release. */
export interface Want {
  readonly slot: Slot
  readonly outcome: 'hit' | 'kept' | 'miss' | 'blocked'
  readonly request?: SampleRequest
}

/** A sample to carry from one extent to another before the first is given up. */
export interface CarryCopy {
  readonly from: Extent
  readonly to: Extent
  readonly slot: Slot
}

export interface StreamPlanOptions {
  readonly sequence: RankSequence
  /** The order of an epoch, or undefined while it is being made. */
  readonly orderOf: (epoch: number) => EpochOrder | undefined
  readonly nodeCount: number
  readonly nodeOf: (sample: number, position: number) => number
  /** Bytes that a sample takes in the arena. */
  readonly extentBytesOf: (sample: number) => number
  readonly arena: ArenaPlan
  readonly carry: CarryOver
  /** Bytes that prefetching may take now. */
  readonly prefetchRoomBytes: () => number
  readonly settings: PrefetchSettings
}

/** Counts since the stream began. */
export interface StreamCounts {
  hits: number
  kept: number
  misses: number
  requests: number
  requested: number
  carried: number
  carryRefused: number
  dropped: number
}

/** Decides for one rank what to ask for, from whom, where it goes and what is kept. Does none of it. */
export interface StreamPlan {
  readonly counts: Readonly<StreamCounts>
  /** Serial behind the last one that a client has taken. */
  readonly frontier: number
  /** Announces that a client needs `serial` now. */
  want(serial: number): Want
  /** The next low-water request, or undefined when every list has enough or there is no room. */
  nextPrefetch(): SampleRequest | undefined
  /** Bytes of a slot have come (or never will). */
  settle(slot: Slot, isOk: boolean): void
  /** A request is over; all of its slots are settled. */
  finishRequest(request: SampleRequest): void
  /** Hands a ready slot to a client. */
  lease(slot: Slot): void
  /** A client is done with a slot: it is evicted or kept. A copy, when returned, must be made and confirmed. */
  release(slot: Slot): CarryCopy | undefined
  confirmCopy(copy: CarryCopy): void
  /** Gives up the ready sample that is needed last, so that a miss finds room. Returns whether there was one. */
  dropFarthest(): boolean
  /** The next item a client takes is `serial`; keeps what is still useful. */
  reposition(serial: number): void
  /** Gives everything back. */
  close(): void
}

export function createStreamPlan(options: StreamPlanOptions): StreamPlan {
  const { sequence, arena, carry, settings, nodeCount } = options
  const { itemsPerEpoch } = sequence
  const { sampleCount } = sequence.options
  const lists = createPrefetchLists(nodeCount)
  const slots = new Map<number, Slot>()
  const ahead = new Array<number>(nodeCount).fill(0)
  const inFlight = new Array<number>(nodeCount).fill(0)
  const hasAsked = new Array<boolean>(nodeCount).fill(false)
  const counts: StreamCounts = {
    hits: 0,
    kept: 0,
    misses: 0,
    requests: 0,
    requested: 0,
    carried: 0,
    carryRefused: 0,
    dropped: 0,
  }
  let scanned = 0
  let frontier = 0
  let start = 0
  let nextNode = 0
  let unreleased = 0
  let leftOut: { epoch: number; samples: ReadonlySet<number> } = { epoch: -1, samples: new Set() }
  const forget = (slot: Slot) => {
    if (slots.get(slot.serial) === slot) slots.delete(slot.serial)
  }

  const makeSlot = (serial: number, order: EpochOrder): Slot => {
    const epoch = Math.floor(serial / itemsPerEpoch)
    const position = positionOfItem(sequence, serial - epoch * itemsPerEpoch)
    const sample = order.sampleAt(position % sampleCount)
    const node = options.nodeOf(sample, position)
    return {
      serial,
      epoch,
      position,
      sample,
      node,
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
    const epochBefore = (slot.epoch - 1) * itemsPerEpoch
    const isComplete = frontier >= epochBefore + itemsPerEpoch && unreleased === 0
    return !isComplete && canPromise(slot.epoch) && !samplesLeftOut(slot.epoch - 1).has(slot.sample)
  }
  const canPromise = (epoch: number) => isAlone && start <= (epoch - 1) * itemsPerEpoch
  const isAlone = sequence.globalBatch === sequence.options.batchSize

  /** Brings one more item into view. Returns whether there was one. */
  const scan = (): boolean => {
    const epoch = Math.floor(scanned / itemsPerEpoch)
    const running = Math.floor((frontier === start ? frontier : frontier - 1) / itemsPerEpoch)
    if (epoch > running && (!settings.isPastEnd || epoch > running + 1)) return false
    const order = options.orderOf(epoch)
    if (!order) return false
    // What the running epoch will leave in Cache_next is not known before its end, so the look ahead stops there.
    const epochStart = epoch * itemsPerEpoch
    const isBeforeEnd = frontier < epochStart || (frontier === epochStart && unreleased > 0)
    if (isBeforeEnd && carry.prefixSize(epoch) > 0 && !canPromise(epoch)) return false
    const slot = makeSlot(scanned++, order)
    slots.set(slot.serial, slot)
    if (carry.holds(slot.epoch, slot.sample) || isPromised(slot)) slot.state = 'expected'
    else lists.append(slot.node, slot.serial)
    return true
  }

  /** Looks ahead until the list of `node` has an entry; bounded, so that a skewed layout cannot scan an epoch. */
  const fillList = (node: number): boolean => {
    const limit = scanned + 4 * nodeCount * (settings.k + 16)
    while (lists.waiting(node) === 0 && scanned < limit) if (!scan()) return false
    return lists.waiting(node) > 0
  }

  const reserve = (slot: Slot, extent: Extent) => {
    slot.extent = extent
    slot.state = 'inflight'
  }

  /** Adds following samples of the list to a request while there is room. */
  const takeFollowing = (node: number, taken: Slot[], count: number): void => {
    let bytes = taken.reduce((sum, slot) => sum + (slot.extent?.length ?? 0), 0)
    while (taken.length < count && fillList(node)) {
      const slot = slots.get(lists.first(node)!)!
      if (carry.holds(slot.epoch, slot.sample)) {
        lists.shift(node)
        slot.state = 'expected'
        continue
      }
      const length = options.extentBytesOf(slot.sample)
      if (taken.length > 0 && bytes + length > settings.maxRequestBytes) return
      if (length > options.prefetchRoomBytes()) return
      const extent = arena.reserveBottom(length, slot.sample, slot.serial, false)
      if (!extent) return
      lists.shift(node)
      reserve(slot, extent)
      slot.isAhead = true
      ahead[node]!++
      bytes += length
      taken.push(slot)
    }
  }

  const openRequest = (node: number, taken: readonly Slot[], isMiss: boolean): SampleRequest => {
    inFlight[node]!++
    counts.requests++
    counts.requested += taken.length
    hasAsked[node] = true
    return { node, slots: taken, isMiss }
  }

  const requestMissed = (slot: Slot): SampleRequest | undefined => {
    const length = options.extentBytesOf(slot.sample)
    const extent =
      arena.reserveTop(length, slot.sample, slot.serial) ??
      arena.reserveBottom(length, slot.sample, slot.serial, true)
    if (!extent) return undefined
    lists.remove(slot.node, slot.serial)
    reserve(slot, extent)
    const taken = [slot]
    takeFollowing(slot.node, taken, settings.k)
    return openRequest(slot.node, taken, true)
  }

  /** Gives the slot's bytes back, if any, and takes it out of the count of its list. */
  const discard = (slot: Slot) => {
    if (slot.isAhead) ahead[slot.node]!--
    slot.isAhead = false
    if (slot.state === 'ready' && slot.extent) {
      arena.finish(slot.extent)
      slot.extent = undefined
    }
    forget(slot)
    slot.state = 'dropped' // bytes still on their way are given back when they arrive
  }

  const plan: StreamPlan = {
    counts,
    get frontier() {
      return frontier
    },
    want(serial) {
      frontier = Math.max(frontier, serial + 1)
      while (scanned <= serial && scan()) {}
      let slot = slots.get(serial)
      if (!slot || slot.isWanted || slot.state === 'leased' || slot.state === 'failed') {
        // Asked for again (a client came back, or went back): read anew, beside whoever has it.
        const order = options.orderOf(Math.floor(serial / itemsPerEpoch))
        if (!order) throw new Error(`the order of item ${serial} is not there yet`)
        slot = makeSlot(serial, order)
        slots.set(serial, slot)
      }
      slot.isWanted = true
      if (slot.state === 'expected' || slot.state === 'waiting') {
        const extent = carry.take(slot.epoch, slot.sample)
        if (extent) {
          lists.remove(slot.node, serial)
          slot.extent = extent
          slot.state = 'ready'
          counts.kept++
          return { slot, outcome: 'kept' }
        }
        const request = requestMissed(slot)
        if (!request) {
          slot.isWanted = false
          return { slot, outcome: 'blocked' }
        }
        counts.misses++
        return { slot, outcome: 'miss', request }
      }
      counts.hits++
      return { slot, outcome: 'hit' }
    },
    nextPrefetch() {
      if (settings.lowWater < 0) return undefined
      for (let tried = 0; tried < nodeCount; tried++) {
        const node = nextNode
        nextNode = (nextNode + 1) % nodeCount
        if (inFlight[node]! >= settings.inFlightPerNode || ahead[node]! > settings.lowWater) continue
        if (!fillList(node)) continue
        const isFirst = settings.isStaggered && !hasAsked[node]
        const count = isFirst ? 1 + Math.floor(((settings.k - 1) * (node + 1)) / nodeCount) : settings.k
        const taken: Slot[] = []
        takeFollowing(node, taken, count)
        if (taken.length > 0) return openRequest(node, taken, false)
      }
      return undefined
    },
    settle(slot, isOk) {
      const { extent } = slot
      if (slot.state === 'dropped' || !isOk) {
        if (extent) arena.finish(extent)
        slot.extent = undefined
        if (slot.state === 'dropped') return
        if (slot.isAhead) ahead[slot.node]!--
        slot.isAhead = false
        slot.state = 'failed'
        return
      }
      slot.state = 'ready'
      extent!.state = 'ready'
    },
    finishRequest(request) {
      inFlight[request.node]!--
    },
    lease(slot) {
      slot.state = 'leased'
      unreleased++
      slot.extent!.state = 'leased'
      if (slot.isAhead) ahead[slot.node]!--
      slot.isAhead = false
    },
    release(slot) {
      const extent = slot.extent!
      forget(slot)
      slot.extent = undefined
      unreleased--
      const next = slot.epoch + 1
      if (!carry.isWanted(next, slot.sample) || carry.holds(next, slot.sample)) {
        arena.finish(extent)
        return undefined
      }
      if (extent.zone === arena.top) {
        counts.carried++
        carry.insert(next, slot.sample, extent)
        return undefined
      }
      const to = arena.reserveTop(extent.length, slot.sample, slot.serial)
      if (to) {
        unreleased++
        return { from: extent, to, slot }
      }
      counts.carryRefused++
      arena.finish(extent)
      return undefined
    },
    confirmCopy({ from, to, slot }) {
      unreleased--
      counts.carried++
      carry.insert(slot.epoch + 1, slot.sample, to)
      arena.finish(from)
    },
    dropFarthest() {
      let farthest: Slot | undefined
      for (const slot of slots.values())
        if (slot.state === 'ready' && !slot.isWanted && slot.serial > (farthest?.serial ?? -1))
          farthest = slot
      if (!farthest) return false
      const { serial, node } = farthest
      discard(farthest)
      counts.dropped++
      const again = makeSlot(serial, options.orderOf(farthest.epoch)!)
      slots.set(serial, again)
      lists.restore(node, serial)
      return true
    },
    reposition(serial) {
      const isBackward = serial < frontier
      for (const slot of [...slots.values()])
        if ((isBackward || slot.serial < serial) && slot.state !== 'leased') discard(slot)
      if (isBackward) lists.clear()
      else lists.dropBelow(serial)
      if (isBackward || scanned < serial) scanned = serial
      if (isBackward || serial !== frontier) start = serial
      hasAsked.fill(false)
      frontier = serial
    },
    close() {
      for (const slot of [...slots.values()]) if (slot.state !== 'leased') discard(slot)
      lists.clear()
    },
  }
  return plan
}
