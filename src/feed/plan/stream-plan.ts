import { createLookAhead, type LookAheadOptions, type ReadingPlace } from './look-ahead.js'
import { createPrefetchLists } from './prefetch-lists.js'
import { createRequestPlan, type RequestCounts, type RequestPlanOptions } from './request-plan.js'
import type { CarryCopy, SampleRequest, Slot, Want } from './slot.js'

export type StreamPlanOptions = Omit<LookAheadOptions & RequestPlanOptions, keyof Shared> & {
  /** Bytes that Cache_next may hold. */
  readonly carryBytes: () => number
}

/** What the parts of a plan share. */
interface Shared {
  readonly place: unknown
  readonly lists: unknown
  readonly slots: unknown
  readonly lookAhead: unknown
  readonly counts: unknown
}

/** Counts since the stream began. */
export interface StreamCounts extends RequestCounts {
  hits: number
  kept: number
  misses: number
  carried: number
  carryRefused: number
  dropped: number
}

/** Decides for one rank what to ask for, from whom, where it goes and what is kept. Does none of it. */
export interface StreamPlan {
  readonly counts: Readonly<StreamCounts>
  /** Serial behind the last one that a client has taken. */
  readonly frontier: number
  /** Samples that are in the arena and not yet taken. */
  countReady(): number
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
  /** A client is done with a slot: it is evicted or kept. A copy, when returned, must be tried and settled. */
  release(slot: Slot): CarryCopy | undefined
  settleCopy(copy: CarryCopy, isMade: boolean): void
  /** Gives up the ready sample that is needed last, so that a miss finds room. Returns whether there was one. */
  dropFarthest(): boolean
  /** The next item a client takes is `serial`; keeps what is still useful. */
  reposition(serial: number): void
  /** Gives everything back. */
  close(): void
}

export function createStreamPlan(options: StreamPlanOptions): StreamPlan {
  const { arena, carry } = options
  const lists = createPrefetchLists(options.nodeCount)
  const slots = new Map<number, Slot>()
  const place: ReadingPlace = { start: 0, frontier: 0, unreleased: 0 }
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
  const lookAhead = createLookAhead({ ...options, place, lists, slots })
  const requests = createRequestPlan({ ...options, lookAhead, lists, slots, counts })

  const forget = (slot: Slot) => {
    if (slots.get(slot.serial) === slot) slots.delete(slot.serial)
  }
  /** Gives the slot's bytes back, if any, and takes it out of the count of its list. */
  const discard = (slot: Slot) => {
    requests.leaveAhead(slot)
    if (slot.isWanted) place.unreleased--
    if (slot.state === 'ready' && slot.extent) {
      arena.finish(slot.extent)
      slot.extent = undefined
    }
    forget(slot)
    slot.state = 'dropped' // bytes still on their way are given back when they arrive
  }

  return {
    counts,
    get frontier() {
      return place.frontier
    },
    countReady() {
      let ready = 0
      for (const slot of slots.values()) if (slot.state === 'ready') ready++
      return ready
    },
    want(serial) {
      place.frontier = Math.max(place.frontier, serial + 1)
      lookAhead.reach(serial)
      let slot = slots.get(serial)
      if (!slot || slot.isWanted || slot.state === 'leased' || slot.state === 'failed') {
        // Asked for again (a client came back, or went back): read anew, beside whoever has it.
        slot = lookAhead.makeSlot(serial)
        slots.set(serial, slot)
      }
      slot.isWanted = true
      place.unreleased++
      if (slot.state !== 'expected' && slot.state !== 'waiting') {
        counts.hits++
        return { slot, outcome: 'hit' }
      }
      const extent = carry.take(slot.epoch, slot.sample)
      if (extent) {
        lists.remove(slot.node, serial)
        slot.extent = extent
        slot.state = 'ready'
        counts.kept++
        return { slot, outcome: 'kept' }
      }
      const request = requests.planMissed(slot)
      if (!request) {
        slot.isWanted = false
        place.unreleased--
        return { slot, outcome: 'blocked' }
      }
      counts.misses++
      return { slot, outcome: 'miss', request }
    },
    nextPrefetch: requests.planNext,
    settle(slot, isOk) {
      const { extent } = slot
      if (isOk && slot.state !== 'dropped') {
        slot.state = 'ready'
        extent!.state = 'ready'
        return
      }
      if (extent) arena.finish(extent)
      slot.extent = undefined
      if (slot.state === 'dropped') return
      requests.leaveAhead(slot)
      if (slot.isWanted) place.unreleased--
      slot.state = 'failed'
    },
    finishRequest: requests.finish,
    lease(slot) {
      slot.state = 'leased'
      slot.extent!.state = 'leased'
      requests.leaveAhead(slot)
    },
    release(slot) {
      const extent = slot.extent!
      forget(slot)
      slot.extent = undefined
      place.unreleased--
      const next = slot.epoch + 1
      if (!carry.isWanted(next, slot.sample) || carry.holds(next, slot.sample)) {
        arena.finish(extent)
        return undefined
      }
      if (carry.heldBytes() + extent.length > options.carryBytes()) {
        counts.carryRefused++
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
        place.unreleased++
        return { from: extent, to, slot }
      }
      counts.carryRefused++
      arena.finish(extent)
      return undefined
    },
    settleCopy({ from, to, slot }, isMade) {
      place.unreleased--
      arena.finish(from)
      if (!isMade) return arena.finish(to)
      counts.carried++
      carry.insert(slot.epoch + 1, slot.sample, to)
    },
    dropFarthest() {
      let farthest: Slot | undefined
      for (const slot of slots.values())
        if (slot.state === 'ready' && !slot.isWanted && slot.serial > (farthest?.serial ?? -1))
          farthest = slot
      if (!farthest) return false
      discard(farthest)
      counts.dropped++
      slots.set(farthest.serial, { ...farthest, state: 'waiting' })
      lists.restore(farthest.node, farthest.serial)
      return true
    },
    reposition(serial) {
      const isBackward = serial < place.frontier
      for (const slot of [...slots.values()])
        if ((isBackward || slot.serial < serial) && slot.state !== 'leased') discard(slot)
      if (isBackward) lists.clear()
      else lists.dropBelow(serial)
      lookAhead.moveTo(serial, isBackward)
      if (isBackward || serial !== place.frontier) place.start = serial
      requests.restart()
      place.frontier = serial
    },
    close() {
      for (const slot of [...slots.values()]) if (slot.state !== 'leased') discard(slot)
      lists.clear()
    },
  }
}
