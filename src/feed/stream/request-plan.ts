import type { ExtentItem } from '../arena/arena-extents.js'
import type { SampleRoom } from '../arena/sample-room.js'
import type { RankItem, RankItems } from '../epochs/rank-items.js'
import { batchOfSerial } from '../plan/rank-sequence.js'
import type { LookAhead } from './look-ahead.js'
import type { PrefetchLists } from './prefetch-lists.js'
import type { SampleRequest, Slot } from './slot.js'

/** When to request samples, and how many at a time. */
export interface PrefetchSettings {
  /** Maximum number of samples in one request. */
  readonly k: number
  /** Maximum bytes in one request; its first sample is always allowed. */
  readonly maxRequestBytes: number
  /** Requests more of a list when at most this many of its samples are ready or on their way; −1 = only on a miss. */
  readonly lowWater: number
  /** Maximum number of low-water requests in flight to one node. A miss is never held back. */
  readonly inFlightPerNode: number
  /** Whether the samples of a batch lie side by side, and a request ends with a batch instead of inside its second. */
  readonly isBatched: boolean
  /** Whether lists run on into the next epoch. */
  readonly isPastEnd: boolean
  /** Whether the first requests differ in length, so that the lists do not all run out together. */
  readonly isStaggered: boolean
}

interface RequestPlanOptions {
  readonly items: RankItems
  readonly room: SampleRoom
  readonly settings: PrefetchSettings
  readonly lookAhead: LookAhead
  readonly lists: PrefetchLists
  readonly slots: ReadonlyMap<number, Slot>
  readonly counts: RequestCounts
}

/** Counts since the stream began. */
export interface RequestCounts {
  requests: number
  /** Number of samples in all requests. */
  requested: number
}

/** Requests made to a storage node. */
interface AskedNode {
  /** Number of samples of its list that are ready or on their way. */
  ahead: number
  /** Number of requests in flight. */
  inFlight: number
  hasAsked: boolean
}

/** The next samples of a list that belong to one batch. */
interface BatchGroup {
  readonly slots: readonly Slot[]
  /** Whether they are all waiting samples of that batch. */
  readonly isWhole: boolean
}

/** Makes requests from the prefetch lists, each with room in the arena for its samples. */
export class RequestPlan {
  readonly #options: RequestPlanOptions
  readonly #nodes: readonly AskedNode[]
  #nextNode = 0

  constructor(options: RequestPlanOptions) {
    this.#options = options
    const { nodeCount } = options.items.placed
    this.#nodes = Array.from({ length: nodeCount }, () => ({ ahead: 0, inFlight: 0, hasAsked: false }))
  }

  /** Requests the missed sample and the ones after it on its node's list; undefined if not even the first has room. */
  planMissed(slot: Slot): SampleRequest | undefined {
    const { room, lists, settings } = this.#options
    const item = this.#extentItem(slot)
    const extent = room.space.reserveTop(item) ?? room.space.reserveBottom(item, 'missed')
    if (!extent) return undefined
    lists.remove(slot.node, slot.serial)
    slot.extent = extent
    slot.state = 'inflight'
    const taken = [slot]
    this.#takeFollowing(slot.node, taken, settings.k)
    return this.#open({ node: slot.node, slots: taken, isMiss: true })
  }

  /** Returns the next low-water request; undefined if every list has enough or there is no room. */
  planNext(): SampleRequest | undefined {
    const { settings, lookAhead } = this.#options
    if (settings.lowWater < 0) return undefined
    for (let tried = 0; tried < this.#nodes.length; tried++) {
      const node = this.#nextNode
      this.#nextNode = (node + 1) % this.#nodes.length
      const { inFlight, ahead } = this.#nodes[node]!
      if (inFlight >= settings.inFlightPerNode || ahead > settings.lowWater) continue
      if (!lookAhead.fillList(node, 1)) continue
      const taken: Slot[] = []
      this.#takeFollowing(node, taken, this.#countFor(node))
      if (taken.length > 0) return this.#open({ node, slots: taken, isMiss: false })
    }
    return undefined
  }

  /** Records that the answer to a request is complete. */
  finish(request: SampleRequest): void {
    this.#nodes[request.node]!.inFlight--
  }

  /** Stops counting a slot among those its list is ahead. */
  leaveAhead(slot: Slot): void {
    if (slot.isAhead) this.#nodes[slot.node]!.ahead--
    slot.isAhead = false
  }

  /** Staggers the first requests again from now on. */
  restart(): void {
    for (const node of this.#nodes) node.hasAsked = false
  }

  /** Number of samples in the next low-water request to a node. */
  #countFor(node: number): number {
    const { k, isStaggered } = this.#options.settings
    const isFirst = isStaggered && !this.#nodes[node]!.hasAsked
    return isFirst ? 1 + Math.floor(((k - 1) * (node + 1)) / this.#nodes.length) : k
  }

  #open(request: SampleRequest): SampleRequest {
    const { counts } = this.#options
    const node = this.#nodes[request.node]!
    node.inFlight++
    node.hasAsked = true
    counts.requests++
    counts.requested += request.slots.length
    const { extents } = this.#options.room.space
    for (const { extent } of request.slots) extents.mark(extent!, 'reserved') // it must stay where its bytes will go
    return request
  }

  /** Adds following samples of the list to a request while there is room, with those of a batch side by side. */
  #takeFollowing(node: number, taken: Slot[], count: number): void {
    const { room, settings } = this.#options
    let bytes = taken.reduce((sum, { sample }) => sum + room.extentBytesOf(sample), 0)
    while (taken.length < count) {
      // The first sample of a request is allowed, however long it is.
      const requestBytes = taken.length === 0 ? Number.POSITIVE_INFINITY : settings.maxRequestBytes - bytes
      const atMost = { count: count - taken.length, bytes: Math.min(requestBytes, room.prefetchRoomBytes()) }
      const group = this.#nextOfBatch(node, atMost)
      if (group.slots.length === 0) return
      if (!group.isWhole && taken.length > 0 && settings.isBatched) return
      const placed = this.#place(group.slots)
      for (const { sample } of placed) bytes += room.extentBytesOf(sample)
      taken.push(...placed)
      if (placed.length < group.slots.length) return
    }
  }

  /** Places the next samples of a list, as many as there is room for. */
  #place(slots: readonly Slot[]): readonly Slot[] {
    const { room, settings, lists } = this.#options
    const items = slots.map((slot) => this.#extentItem(slot))
    const run = settings.isBatched ? room.space.reserveRun(items) : undefined
    for (const [i, slot] of slots.entries()) {
      const extent = run ? run[i]! : room.space.reserveBottom(items[i]!, 'ahead')
      if (!extent) return slots.slice(0, i)
      lists.shift(slot.node)
      slot.extent = extent
      slot.state = 'inflight'
      slot.isAhead = true
      this.#nodes[slot.node]!.ahead++
    }
    return slots
  }

  /** Returns the next samples on the list that belong to one batch, as many as fit. */
  #nextOfBatch(node: number, atMost: { readonly count: number; readonly bytes: number }): BatchGroup {
    const { lookAhead, lists, slots, room, settings } = this.#options
    const group: Slot[] = []
    let bytes = 0
    while (group.length < atMost.count) {
      if (!lookAhead.fillList(node, group.length + 1)) return { slots: group, isWhole: true }
      const slot = slots.get(lists.at(node, group.length)!)!
      if (lookAhead.claimKept(slot)) {
        lists.remove(node, slot.serial)
        continue
      }
      if (!this.#isOfBatch(group, slot)) return { slots: group, isWhole: true }
      bytes += room.extentBytesOf(slot.sample)
      if (bytes > atMost.bytes) return { slots: group, isWhole: false }
      group.push(slot)
    }
    const isEnd = !settings.isBatched || !lookAhead.fillList(node, group.length + 1)
    return {
      slots: group,
      isWhole: isEnd || !this.#isOfBatch(group, slots.get(lists.at(node, group.length)!)!),
    }
  }

  /** Whether `slot` belongs to the batch of `group`; always true for an empty group. */
  #isOfBatch(group: readonly Slot[], slot: Slot): boolean {
    const { sequence } = this.#options.items
    const first = group[0]
    return !first || batchOfSerial(sequence, first.serial) === batchOfSerial(sequence, slot.serial)
  }

  #extentItem({ sample }: RankItem): ExtentItem {
    return { length: this.#options.room.extentBytesOf(sample), sample }
  }
}
