import type { ExtentItem } from '../arena/arena-extents.js'
import type { SampleRoom } from '../arena/sample-room.js'
import type { RankItem, RankItems } from '../epochs/rank-items.js'
import { batchOfSerial } from '../plan/rank-sequence.js'
import type { LookAhead } from './look-ahead.js'
import type { PrefetchLists } from './prefetch-lists.js'
import type { SampleRequest, Slot } from './slot.js'

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
  /** Whether the samples of a batch lie side by side, and a request ends with a batch rather than inside its second. */
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
  /** Samples in all requests. */
  requested: number
}

/** What a storage node has been asked for. */
interface AskedNode {
  /** Samples of its list that are ready or on their way. */
  ahead: number
  /** Requests on their way. */
  inFlight: number
  hasAsked: boolean
}

/** The next samples of a list that belong to one batch. */
interface BatchGroup {
  readonly slots: readonly Slot[]
  /** Whether they are all that wait of that batch. */
  readonly isWhole: boolean
}

/** Makes requests out of the prefetch lists, each with room in the arena for what it asks. */
export class RequestPlan {
  readonly #options: RequestPlanOptions
  readonly #nodes: readonly AskedNode[]
  #nextNode = 0

  constructor(options: RequestPlanOptions) {
    this.#options = options
    const { nodeCount } = options.items.placed
    this.#nodes = Array.from({ length: nodeCount }, () => ({ ahead: 0, inFlight: 0, hasAsked: false }))
  }

  /** The missed sample and what follows it on the list of its node, or undefined when even that one has no room. */
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

  /** The next low-water request, or undefined when every list has enough or there is no room. */
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

  /** The answer to a request is complete. */
  finish(request: SampleRequest): void {
    this.#nodes[request.node]!.inFlight--
  }

  /** A slot no longer counts among those that its list is ahead. */
  leaveAhead(slot: Slot): void {
    if (slot.isAhead) this.#nodes[slot.node]!.ahead--
    slot.isAhead = false
  }

  /** From now on first requests are staggered again. */
  restart(): void {
    for (const node of this.#nodes) node.hasAsked = false
  }

  /** How many samples the next low-water request to a node asks for. */
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
    for (const { extent } of request.slots) extents.mark(extent!, 'reserved') // it stays where its bytes will go
    return request
  }

  /** Adds following samples of the list to a request while there is room, those of a batch side by side. */
  #takeFollowing(node: number, taken: Slot[], count: number): void {
    const { room, settings } = this.#options
    let bytes = taken.reduce((sum, { sample }) => sum + room.extentBytesOf(sample), 0)
    while (taken.length < count) {
      // The first sample of a request goes however long it is.
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

  /** Gives the next samples of a list their places, as many as there is room for. */
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

  /** The next of the list that belong to one batch, as many as fit. */
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

  /** Whether `slot` is of the batch that `group` is of; any is while the group is empty. */
  #isOfBatch(group: readonly Slot[], slot: Slot): boolean {
    const { sequence } = this.#options.items
    const first = group[0]
    return !first || batchOfSerial(sequence, first.serial) === batchOfSerial(sequence, slot.serial)
  }

  #extentItem({ sample }: RankItem): ExtentItem {
    return { length: this.#options.room.extentBytesOf(sample), sample }
  }
}
