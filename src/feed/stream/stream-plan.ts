import type { SampleRoom } from '../arena/sample-room.js'
import type { CarryOver } from '../epochs/carry-over.js'
import type { RankItems } from '../epochs/rank-items.js'
import { LookAhead, type ReadingPlace } from './look-ahead.js'
import { PrefetchLists } from './prefetch-lists.js'
import { type PrefetchSettings, type RequestCounts, RequestPlan } from './request-plan.js'
import type { CarryCopy, SampleRequest, Slot, Want } from './slot.js'

interface StreamPlanOptions {
  readonly items: RankItems
  readonly room: SampleRoom
  readonly carry: CarryOver
  readonly settings: PrefetchSettings
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

/** Decides for one rank what to request, from which node, where it goes and what is kept. Carries out none of this. */
export class StreamPlan {
  readonly #counts: StreamCounts = {
    hits: 0,
    kept: 0,
    misses: 0,
    requests: 0,
    requested: 0,
    carried: 0,
    carryRefused: 0,
    dropped: 0,
  }
  readonly #room: SampleRoom
  readonly #carry: CarryOver
  readonly #lists: PrefetchLists
  readonly #slots = new Map<number, Slot>()
  readonly #place: ReadingPlace = { start: 0, frontier: 0, unreleased: 0, copied: 0 }
  readonly #lookAhead: LookAhead
  readonly #requests: RequestPlan

  constructor(options: StreamPlanOptions) {
    this.#room = options.room
    this.#carry = options.carry
    this.#lists = new PrefetchLists(options.items.placed.nodeCount)
    const shared = { ...options, lists: this.#lists, slots: this.#slots }
    this.#lookAhead = new LookAhead({ ...shared, place: this.#place })
    this.#requests = new RequestPlan({ ...shared, lookAhead: this.#lookAhead, counts: this.#counts })
  }

  get counts(): Readonly<StreamCounts> {
    return this.#counts
  }

  /** Number of samples in the arena that are not yet taken. */
  countReady(): number {
    let ready = 0
    for (const slot of this.#slots.values()) if (slot.state === 'ready') ready++
    return ready
  }

  /** Announces that a client needs `serial` now. */
  want(serial: number): Want {
    const slot = this.#slotFor(serial)
    slot.isWanted = true
    this.#place.unreleased++
    if (slot.state !== 'waiting') {
      this.#counts.hits++
      return { slot, outcome: 'hit' }
    }
    const extent = this.#carry.take(slot.epoch, slot.sample)
    if (extent) {
      this.#lists.remove(slot.node, serial)
      slot.extent = extent
      slot.state = 'ready'
      this.#counts.kept++
      return { slot, outcome: 'kept' }
    }
    const request = this.#requests.planMissed(slot)
    if (!request) {
      slot.isWanted = false
      this.#place.unreleased--
      return { slot, outcome: 'blocked' }
    }
    this.#counts.misses++
    return { slot, outcome: 'miss', request }
  }

  /** Returns the next low-water request; undefined if every list has enough or there is no room. */
  nextPrefetch(): SampleRequest | undefined {
    return this.#requests.planNext()
  }

  /** Records that the bytes of a slot have arrived. */
  settle(slot: Slot): void {
    if (slot.state === 'dropped') {
      this.#giveBack(slot)
      return
    }
    slot.state = 'ready'
    this.#room.space.extents.mark(slot.extent!, 'ready')
  }

  /** Records that the bytes of a slot will never arrive. */
  fail(slot: Slot): void {
    this.#giveBack(slot)
    if (slot.state === 'dropped') return
    this.#requests.leaveAhead(slot)
    if (slot.isWanted) this.#place.unreleased--
    slot.state = 'failed'
  }

  /** Records that a request is over; all of its slots are settled. */
  finishRequest(request: SampleRequest): void {
    this.#requests.finish(request)
  }

  /** Hands a ready slot to a client. */
  lease(slot: Slot): void {
    slot.state = 'leased'
    this.#room.space.extents.mark(slot.extent!, 'leased')
    this.#requests.leaveAhead(slot)
  }

  /**
   * Seed 000: a sample for a client leaves the prefetch space, so that it is in no other sample's way while the client
   * reads it. If a copy is returned, the caller must make it and settle it, or fail it; otherwise the client reads in
   * place.
   */
  planDelivery(slot: Slot): CarryCopy | undefined {
    const { space } = this.#room
    const from = slot.extent!
    if (space.extents.isAtTop(from)) return undefined
    const to = space.reserveTop({ length: space.extents.lengthOf(from), sample: slot.sample })
    if (!to) return undefined
    space.extents.mark(from, 'leased')
    return { from, to, slot }
  }

  /** Records that a client's sample has left the prefetch space. */
  settleDelivery({ from, to, slot }: CarryCopy): void {
    slot.extent = to
    this.#room.space.extents.mark(to, 'ready')
    this.#room.space.finish(from)
  }

  /** Records that it could not leave. */
  failDelivery({ from, to }: CarryCopy): void {
    this.#room.space.extents.mark(from, 'ready')
    this.#room.space.finish(to)
  }

  /** Evicts or keeps a slot that a client is done with. If a copy is returned, the caller must try it and settle it. */
  release(slot: Slot): CarryCopy | undefined {
    const { space } = this.#room
    const extent = slot.extent!
    this.#forget(slot)
    slot.extent = undefined
    this.#place.unreleased--
    const next = slot.epoch + 1
    if (!this.#carry.isWanted(next, slot.sample) || this.#carry.holds(next, slot.sample)) {
      space.finish(extent)
      return undefined
    }
    const length = space.extents.lengthOf(extent)
    const isRoom = this.#carry.heldBytes() + length <= this.#room.carryBytes
    if (isRoom && space.extents.isAtTop(extent)) {
      this.#counts.carried++
      this.#carry.insert(next, extent)
      return undefined
    }
    const to = isRoom ? space.reserveTop({ length, sample: slot.sample }) : undefined
    if (to) {
      this.#place.unreleased++
      this.#place.copied++
      return { from: extent, to, slot }
    }
    this.#counts.carryRefused++
    this.#lookAhead.breakPromise(next, slot.sample)
    space.finish(extent)
    return undefined
  }

  /** Records that the copy was made: Cache_next has the sample. */
  settleCopy({ from, to, slot }: CarryCopy): void {
    this.#place.unreleased--
    this.#place.copied--
    this.#room.space.finish(from)
    this.#counts.carried++
    this.#carry.insert(slot.epoch + 1, to)
  }

  /** Records that the copy could not be made. */
  failCopy({ from, to, slot }: CarryCopy): void {
    this.#place.unreleased--
    this.#place.copied--
    this.#lookAhead.breakPromise(slot.epoch + 1, slot.sample)
    this.#room.space.finish(from)
    this.#room.space.finish(to)
  }

  /** Drops the ready sample that is needed last, so that a miss finds room. Returns whether there was one. */
  dropFarthest(): boolean {
    let farthest: Slot | undefined
    for (const slot of this.#slots.values())
      if (slot.state === 'ready' && !slot.isWanted && slot.serial > (farthest?.serial ?? -1)) farthest = slot
    if (!farthest) return false
    this.#discard(farthest)
    this.#counts.dropped++
    this.#slots.set(farthest.serial, { ...farthest, state: 'waiting' })
    this.#lists.restore(farthest.node, farthest.serial)
    return true
  }

  /** Makes `serial` the next item that a client takes; keeps everything still useful. */
  reposition(serial: number): void {
    const isBackward = serial < this.#place.frontier
    for (const slot of [...this.#slots.values()])
      if ((isBackward || slot.serial < serial) && slot.state !== 'leased') this.#discard(slot)
    if (isBackward) {
      this.#lists.clear()
      this.#lookAhead.moveBack(serial)
    } else {
      this.#lists.dropBelow(serial)
      this.#lookAhead.moveOn(serial)
    }
    if (serial !== this.#place.frontier) this.#place.start = serial
    this.#requests.restart()
    this.#place.frontier = serial
  }

  /** Gives everything back. */
  close(): void {
    for (const slot of [...this.#slots.values()]) if (slot.state !== 'leased') this.#discard(slot)
    this.#lists.clear()
  }

  /** Returns the slot that a client takes at `serial`. */
  #slotFor(serial: number): Slot {
    this.#place.frontier = Math.max(this.#place.frontier, serial + 1)
    this.#lookAhead.reach(serial)
    const known = this.#slots.get(serial)
    if (known && !known.isWanted && known.state !== 'leased' && known.state !== 'failed') return known
    // Requested again (a client came back, or went back): read it again, beside any client that has it.
    const slot = this.#lookAhead.makeSlot(serial)
    this.#slots.set(serial, slot)
    return slot
  }

  #forget(slot: Slot): void {
    if (this.#slots.get(slot.serial) === slot) this.#slots.delete(slot.serial)
  }

  #giveBack(slot: Slot): void {
    if (slot.extent) this.#room.space.finish(slot.extent)
    slot.extent = undefined
  }

  /** Frees the slot's bytes, if any, and removes it from the count of its list. */
  #discard(slot: Slot): void {
    this.#requests.leaveAhead(slot)
    if (slot.isWanted) this.#place.unreleased--
    if (slot.state === 'ready') this.#giveBack(slot)
    this.#forget(slot)
    slot.state = 'dropped' // bytes in flight are freed when they arrive
  }
}
