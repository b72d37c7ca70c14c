import type { ManifestEntry } from '../../manifest/manifest-entry.js'
import type { Urgency } from '../../model/urgency.js'
import { type Part, planPartBytes } from '../../proof/plan-parts.js'
import type { ByteRange } from '../arrivals/block-set.js'
import type { Need, OrderOfNeed, RangeNeed } from '../arrivals/order-of-need.js'
import { PartQueue, type QueuedPortion } from './part-queue.js'
import type { PartedObject, Portion } from './parted-object.js'
import { type Lane, type LaneTask, TaskLanes } from './task-lanes.js'

/**
 * Something to fetch now. `whole`: an object in one piece. `parts`: open a large object, and `add` its parts. `open`:
 * only open it, because a reader needs a range of it. `portion`: bytes of one part.
 */
export type Work =
  | { readonly kind: 'whole' | 'parts' | 'open'; readonly entry: ManifestEntry }
  | { readonly kind: 'portion'; readonly parted: PartedObject; readonly portion: Portion }

/** Work that was handed out, with its lane and urgency. */
export interface ScheduledWork {
  readonly work: Work
  /** Number of bytes it fetches; 0 if it only opens an object. */
  readonly bytes: number
  readonly lane: Lane
  readonly urgency: Urgency
}

interface QueuedTask extends LaneTask {
  readonly work: Work
}

/** Ranges to fetch: those that a reader waits for, and those that readers ordered. */
type RangeQueue = 'wanted' | 'ordered'

interface ScheduleOptions {
  /** The objects still to fetch, in the order of keys: nodes that wait for each other's objects fetch them in one order. */
  readonly missing: Iterable<ManifestEntry>
  readonly entryOf: (id: number) => ManifestEntry
  /** The needs of readers: those that they wait for, and their orders. */
  readonly need: Pick<
    OrderOfNeed<unknown>,
    'isToFetch' | 'isThere' | 'take' | 'takeWanted' | 'takeOrdered' | 'hasOrders'
  >
  /** Whether another node is still fetching the part of `key` at `partOffset`. */
  readonly isAwaited: (key: string, partOffset: number) => boolean
  /** Whether more parts may be taken that no reader waits for. */
  readonly mayTakeParts: () => boolean
  /** A clock, in ms. */
  readonly nowMs: () => number
}

/**
 * Decides what a download fetches next: first any need that a reader waits for; then ranges that readers ordered, parts
 * of opened objects, objects that readers ordered, and the rest in the order of keys. No bytes are handed out twice,
 * except those that a reader waits for and that are far back in a part under way.
 *
 * `next` hands out work. Its caller reports large objects with `opened` and `add`, and each object with `finish`.
 */
export class Schedule {
  /** Called when a reader starts to wait for something: there may be more to hand out. */
  onHurry = () => {}
  readonly #options: ScheduleOptions
  readonly #missing: Iterator<ManifestEntry>
  readonly #lanes: TaskLanes<QueuedTask>
  readonly #parts = new PartQueue()
  /** The next one is the last of each: a reader may order a hundred thousand ranges of one object. */
  readonly #ranges: Record<RangeQueue, RangeNeed[]> = { wanted: [], ordered: [] }
  /** Ranges of objects that are being opened. */
  readonly #waiting = new Map<number, { readonly queue: RangeQueue; readonly need: RangeNeed }[]>()
  /** Objects being fetched in one piece. */
  readonly #whole = new Set<number>()
  /** Objects that arrive in parts: about to be opened, being opened, or open. */
  readonly #parted = new Set<number>()
  /** Those that are handed out to be opened, and what was opened. */
  readonly #opened = new Map<number, PartedObject | undefined>()

  constructor(options: ScheduleOptions) {
    this.#options = options
    this.#missing = options.missing[Symbol.iterator]()
    this.#lanes = new TaskLanes({
      take: {
        wanted: () =>
          this.#nextRange('wanted') ??
          this.#taskOfPart(this.#parts.nextHurried()) ??
          this.#takeFrom('wanted', () => options.need.takeWanted()),
        ordered: () => this.#takeOrdered(),
        listed: () => this.#takePartOr(() => this.#takeMissing()),
      },
      // Opening an object fetches none of its bytes.
      isAwaited: ({ key, partOffset, bytes }) => bytes > 0 && options.isAwaited(key, partOffset),
      nowMs: options.nowMs,
    })
  }

  /** The next work from a lane with room for its urgency; undefined if no lane has any at present. */
  next(free: Readonly<Record<Urgency, readonly Lane[]>>): ScheduledWork | undefined {
    const taken = this.#lanes.next(free)
    if (taken === undefined) return undefined
    const { task, lane, urgency } = taken
    const work = this.#begin(task.work)
    return { work, bytes: task.bytes, lane, urgency }
  }

  /** A reader waits for an object, or a range of one: it overtakes everything else that was to be fetched. */
  hurry(need: Need): void {
    if (typeof need === 'number') this.#parts.hurry(need)
    this.#lanes.hurry(need)
    this.onHurry()
  }

  /** An object was opened: ranges of it can be handed out. */
  opened(parted: PartedObject): void {
    const { id } = parted.entry
    this.#opened.set(id, parted)
    for (const { queue, need } of this.#waiting.get(id)?.toReversed() ?? []) this.#ranges[queue].push(need)
    this.#waiting.delete(id)
  }

  /** Adds parts of an opened object: all that are missing, or all of them again. */
  add(parted: PartedObject, parts: readonly Part[]): void {
    this.#parts.add(parted, parts)
  }

  /** An object is written and verified. */
  finish(id: number): void {
    this.#whole.delete(id)
    this.#parted.delete(id)
    this.#opened.delete(id)
    this.#parts.forget(id)
  }

  /** Whether the file of an unfinished object holds the bytes of a range. */
  isWritten(id: number, range: ByteRange): boolean {
    return this.#opened.get(id)?.there.has(range) ?? false
  }

  /** A range may have turned a queued object into one that arrives in parts; from now on that is decided. */
  #begin(work: Work): Work {
    if (work.kind === 'portion') return work
    const { entry } = work
    const isOpened = work.kind === 'open' || this.#isInParts(entry)
    if (!isOpened) {
      this.#whole.add(entry.id)
      return work
    }
    if (!this.#opened.has(entry.id)) this.#opened.set(entry.id, undefined)
    return work.kind === 'open' ? work : { kind: 'parts', entry }
  }

  #isInParts({ id, sizeBytes, partBytes }: ManifestEntry): boolean {
    return partBytes !== null || this.#parted.has(id) || planPartBytes(sizeBytes, null) < sizeBytes
  }

  /** A task in a full lane is not claimed yet: a reader may order its object before its turn comes. */
  #takeMissing(): QueuedTask | undefined {
    const { need } = this.#options
    for (let next = this.#missing.next(); !next.done; next = this.#missing.next()) {
      const entry = next.value
      if (need.isToFetch(entry.id)) return { ...this.#taskOf(entry), claim: () => need.take(entry.id) }
    }
    return undefined
  }

  #takeOrdered(): QueuedTask | undefined {
    const { need } = this.#options
    const range = this.#nextRange('ordered')
    if (range || !need.hasOrders) return range
    return this.#takePartOr(() => this.#takeFrom('ordered', () => need.takeOrdered()))
  }

  /** Finishes opened large objects before it opens others. */
  #takePartOr(takeNext: () => QueuedTask | undefined): QueuedTask | undefined {
    const part = this.#options.mayTakeParts() ? this.#taskOfPart(this.#parts.next()) : undefined
    return part ?? (this.#parts.isEmpty ? takeNext() : undefined)
  }

  #takeFrom(queue: RangeQueue, takeNeed: () => Need | undefined): QueuedTask | undefined {
    for (let next = takeNeed(); next !== undefined; next = takeNeed()) {
      if (typeof next === 'number') return this.#taskOf(this.#options.entryOf(next))
      this.#ranges[queue].unshift(next)
      const task = this.#nextRange(queue)
      if (task) return task
    }
    return undefined
  }

  /** The next bytes of queued ranges; undefined if no range is queued, or their parts are not known yet. */
  #nextRange(queue: RangeQueue): QueuedTask | undefined {
    const ranges = this.#ranges[queue]
    for (let next = ranges.at(-1); next; next = ranges.at(-1)) {
      const parted = this.#opened.get(next.id)
      const portion = parted && (queue === 'wanted' ? parted.takeWanted(next) : parted.take(next))
      if (portion) return this.#taskOfPart({ parted, portion })
      ranges.pop()
      const task = parted ? undefined : this.#taskOfOpening(queue, next)
      if (task) return task
    }
    return undefined
  }

  /** Opens an object for a needed range; undefined if that is under way, or no range is needed any more. */
  #taskOfOpening(queue: RangeQueue, need: RangeNeed): QueuedTask | undefined {
    const { id } = need
    if (this.#whole.has(id) || this.#options.need.isThere(id)) return undefined
    const waiting = this.#waiting.get(id)
    if (waiting) waiting.push({ queue, need })
    else this.#waiting.set(id, [{ queue, need }])
    if (waiting || this.#opened.has(id)) return undefined
    this.#parted.add(id)
    const entry = this.#options.entryOf(id)
    return { id, key: entry.key, partOffset: 0, range: NOTHING, bytes: 0, work: { kind: 'open', entry } }
  }

  #taskOf(entry: ManifestEntry): QueuedTask {
    const { id, key, sizeBytes } = entry
    const isInParts = this.#isInParts(entry)
    if (isInParts) this.#parts.expect(id)
    const range = { offset: 0, length: sizeBytes }
    const work: Work = { kind: 'whole', entry }
    return { id, key, partOffset: 0, range, bytes: isInParts ? 0 : sizeBytes, work }
  }

  #taskOfPart(next: QueuedPortion | undefined): QueuedTask | undefined {
    if (next === undefined) return undefined
    const { parted, portion, turn } = next
    const { id, key } = parted.entry
    const work: Work = { kind: 'portion', parted, portion }
    return { id, key, partOffset: portion.part.offset, range: portion, bytes: portion.length, turn, work }
  }
}

const NOTHING: ByteRange = { offset: 0, length: 0 }
