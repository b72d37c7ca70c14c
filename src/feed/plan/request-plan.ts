import type { ArenaPlan } from './arena-plan.js'
import type { LookAhead } from './look-ahead.js'
import type { PrefetchLists } from './prefetch-lists.js'
import { batchOfSerial, type RankSequence } from './rank-sequence.js'
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

export interface RequestPlanOptions {
  readonly sequence: RankSequence
  readonly nodeCount: number
  /** Bytes that a sample takes in the arena. */
  readonly extentBytesOf: (sample: number) => number
  readonly arena: ArenaPlan
  /** Bytes that prefetching may take now. */
  readonly prefetchRoomBytes: () => number
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

/** Makes requests out of the prefetch lists, each with room in the arena for what it asks. */
export interface RequestPlan {
  /** The missed sample and what follows it on the list of its node, or undefined when even that one has no room. */
  planMissed(slot: Slot): SampleRequest | undefined
  /** The next low-water request, or undefined when every list has enough or there is no room. */
  planNext(): SampleRequest | undefined
  /** The answer to a request is complete. */
  finish(request: SampleRequest): void
  /** A slot no longer counts among those that its list is ahead. */
  leaveAhead(slot: Slot): void
  /** From now on first requests are staggered again. */
  restart(): void
}

export function createRequestPlan(options: RequestPlanOptions): RequestPlan {
  const { sequence, arena, settings, nodeCount, lookAhead, lists, slots, counts } = options
  const ahead = new Array<number>(nodeCount).fill(0)
  const inFlight = new Array<number>(nodeCount).fill(0)
  const hasAsked = new Array<boolean>(nodeCount).fill(false)
  let nextNode = 0

  /** The next of the list that belong to one batch, as many as fit; `isWhole`: all that wait of that batch. */
  const nextOfBatch = (node: number, countLeft: number, bytesLeft: number) => {
    const group: Slot[] = []
    const batchOf = (slot: Slot) => batchOfSerial(sequence, slot.serial)
    const isOther = (slot: Slot) => group.length > 0 && batchOf(slot) !== batchOf(group[0]!)
    let bytes = 0
    while (group.length < countLeft) {
      if (!lookAhead.fillList(node, group.length + 1)) return { group, isWhole: true }
      const slot = slots.get(lists.at(node, group.length)!)!
      if (lookAhead.claimKept(slot)) {
        lists.remove(node, slot.serial)
        slot.state = 'expected'
        continue
      }
      if (isOther(slot)) return { group, isWhole: true }
      bytes += options.extentBytesOf(slot.sample)
      if (bytes > bytesLeft) return { group, isWhole: false }
      group.push(slot)
    }
    const isEnd = !settings.isBatched || !lookAhead.fillList(node, group.length + 1)
    return { group, isWhole: isEnd || isOther(slots.get(lists.at(node, group.length)!)!) }
  }

  /** Adds following samples of the list to a request while there is room, those of a batch side by side. */
  const takeFollowing = (node: number, taken: Slot[], count: number): void => {
    let bytes = taken.reduce((sum, slot) => sum + (slot.extent?.length ?? 0), 0)
    while (taken.length < count) {
      // The first sample of a request goes however long it is.
      const requestBytesLeft =
        taken.length === 0 ? Number.POSITIVE_INFINITY : settings.maxRequestBytes - bytes
      const bytesLeft = Math.min(requestBytesLeft, options.prefetchRoomBytes())
      const { group, isWhole } = nextOfBatch(node, count - taken.length, bytesLeft)
      if (group.length === 0 || (!isWhole && taken.length > 0 && settings.isBatched)) return
      const items = group.map(({ sample, serial }) => ({
        length: options.extentBytesOf(sample),
        sample,
        serial,
      }))
      const run = settings.isBatched ? arena.reserveRun(items) : undefined
      for (const [i, slot] of group.entries()) {
        const { length, sample, serial } = items[i]!
        const extent = run ? run[i]! : arena.reserveBottom(length, sample, serial, false)
        if (!extent) return
        lists.shift(node)
        slot.extent = extent
        slot.state = 'inflight'
        slot.isAhead = true
        ahead[node]!++
        bytes += length
        taken.push(slot)
      }
    }
  }

  const open = (node: number, taken: readonly Slot[], isMiss: boolean): SampleRequest => {
    inFlight[node]!++
    counts.requests++
    counts.requested += taken.length
    hasAsked[node] = true
    return { node, slots: taken, isMiss }
  }

  return {
    planMissed(slot) {
      const length = options.extentBytesOf(slot.sample)
      const extent =
        arena.reserveTop(length, slot.sample, slot.serial) ??
        arena.reserveBottom(length, slot.sample, slot.serial, true)
      if (!extent) return undefined
      lists.remove(slot.node, slot.serial)
      slot.extent = extent
      slot.state = 'inflight'
      const taken = [slot]
      takeFollowing(slot.node, taken, settings.k)
      return open(slot.node, taken, true)
    },
    planNext() {
      if (settings.lowWater < 0) return undefined
      for (let tried = 0; tried < nodeCount; tried++) {
        const node = nextNode
        nextNode = (nextNode + 1) % nodeCount
        if (inFlight[node]! >= settings.inFlightPerNode || ahead[node]! > settings.lowWater) continue
        if (!lookAhead.fillList(node, 1)) continue
        const isFirst = settings.isStaggered && !hasAsked[node]
        const count = isFirst ? 1 + Math.floor(((settings.k - 1) * (node + 1)) / nodeCount) : settings.k
        const taken: Slot[] = []
        takeFollowing(node, taken, count)
        if (taken.length > 0) return open(node, taken, false)
      }
      return undefined
    },
    finish(request) {
      inFlight[request.node]!--
    },
    leaveAhead(slot) {
      if (slot.isAhead) ahead[slot.node]!--
      slot.isAhead = false
    },
    restart: () => void hasAsked.fill(false),
  }
}
