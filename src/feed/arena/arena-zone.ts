/**
 * What an extent of the arena is doing.
 * placed: has a place, nobody has been asked for it yet · reserved: bytes are on their way · ready: arrived, not yet
 * used ("unhit") · leased: a client reads it · kept: held for the next epoch · done: used ("hit"), may be evicted.
 * Only `done` is evicted; only `placed` and `ready` are moved.
 */
type ExtentState = 'placed' | 'reserved' | 'ready' | 'leased' | 'kept' | 'done'

/** One entry of the metadata list: where a sample lies. Entries form a list in address order. */
export interface Extent {
  /** Bytes from the zone's own end of the arena. Changes when the extent is moved. */
  start: number
  /** Bytes that the extent occupies. */
  readonly length: number
  state: ExtentState
  readonly sample: number
  /** Pointer into the prefetch list: which item of which epoch this is. */
  readonly serial: number
  readonly zone: ArenaZone
  previous: Extent | undefined
  next: Extent | undefined
}

/** What is to be placed. */
export type ExtentItem = Pick<Extent, 'length' | 'sample' | 'serial'>

/** Carries `length` bytes from `from` to `to` (zone offsets, to < from, may overlap). */
export type MoveBytes = (from: number, to: number, length: number) => void

/** Told of every run that is evicted or moved; for traces and counters. */
export interface ZoneObserver {
  evicted?(run: readonly Extent[]): void
  moved?(run: readonly Extent[], bytes: number): void
  /** A compaction is complete. */
  compacted?(): void
}

interface Hole {
  start: number
  length: number
  before: Extent | undefined
}

/** How many holes a placement looks at: bounded, so that odd sizes do not make it slow. */
const HOLES_TRIED = 64

/** One end of the arena: a growing region of extents with holes. It moves no bytes itself: `slide` is told how. */
export class ArenaZone {
  readonly #observer: ZoneObserver
  #first: Extent | undefined
  #last: Extent | undefined
  #usedBytes = 0
  #liveBytes = 0
  #doneBytes = 0
  #holes: Hole[] = []
  #nextHole = 0
  #pass: { at: Extent | undefined; to: number } | undefined

  constructor(observer: ZoneObserver = {}) {
    this.#observer = observer
  }

  /** Bytes from the zone's end to behind its last extent. */
  get usedBytes(): number {
    return this.#usedBytes
  }

  /** Bytes in extents that are not `done`. */
  get liveBytes(): number {
    return this.#liveBytes
  }

  /** Bytes in `done` extents that a sweep would evict. */
  get doneBytes(): number {
    return this.#doneBytes
  }

  get first(): Extent | undefined {
    return this.#first
  }

  get isSliding(): boolean {
    return this.#pass !== undefined
  }

  /** Places extents side by side behind the last one, or undefined when they would pass `limitBytes`. */
  append(items: readonly ExtentItem[], limitBytes: number): Extent[] | undefined {
    const length = sumLengths(items)
    if (this.#usedBytes + length > limitBytes) return undefined
    const start = this.#usedBytes
    this.#usedBytes += length
    return this.#insertAll(items, start, this.#last)
  }

  /** Places extents side by side into a hole that a sweep found. */
  fill(items: readonly ExtentItem[]): Extent[] | undefined {
    if (this.#pass) return undefined
    const length = sumLengths(items)
    const end = Math.min(this.#holes.length, this.#nextHole + HOLES_TRIED)
    for (let i = this.#nextHole; i < end; i++) {
      const hole = this.#holes[i]!
      if (hole.length < length) continue
      const extents = this.#insertAll(items, hole.start, hole.before)
      hole.start += length
      hole.length -= length
      hole.before = extents.at(-1)
      while (this.#nextHole < this.#holes.length && this.#holes[this.#nextHole]!.length === 0)
        this.#nextHole++
      return extents
    }
    // Too small for the sizes of today: the next sweep finds them again. What a run leaves is for single samples.
    if (items.length === 1) this.#nextHole = end
    return undefined
  }

  /** Marks an extent as evictable. */
  finish(extent: Extent): void {
    extent.state = 'done'
    this.#liveBytes -= extent.length
    this.#doneBytes += extent.length
  }

  /** Evicts runs of `done` extents; each becomes one hole. Returns whether anything was evicted. */
  sweep(): boolean {
    if (this.#pass) return false
    let hasEvicted = false
    let end = 0
    this.#holes = []
    this.#nextHole = 0
    let at = this.#first
    while (at) {
      if (at.state === 'done') {
        hasEvicted = true
        at = this.#evictRun(at)
        continue
      }
      if (at.start > end) this.#holes.push({ start: end, length: at.start - end, before: at.previous })
      end = at.start + at.length
      at = at.next
    }
    this.#usedBytes = end
    return hasEvicted
  }

  /**
   * Compaction: evicts runs of `done` and moves runs of `placed` and `ready` to the front, at most about `maxBytes` per call;
   * other extents stay as walls. Between calls, new extents go behind the zone and are moved afterwards.
   * Returns whether the pass is complete.
   */
  slide(maxBytes: number, move: MoveBytes): boolean {
    if (!this.#pass) {
      this.#pass = { at: this.#first, to: 0 }
      this.#holes = []
      this.#nextHole = 0
    }
    const pass = this.#pass
    let budget = maxBytes
    while (pass.at) {
      const extent: Extent = pass.at
      if (extent.state === 'done') {
        pass.at = this.#evictRun(extent)
        continue
      }
      if (!isMovable(extent) || extent.start === pass.to) {
        pass.to = extent.start + extent.length
        pass.at = extent.next
        continue
      }
      if (budget <= 0) return false
      const run = movableRun(extent, budget)
      const length = sumLengths(run)
      move(extent.start, pass.to, length)
      const distance = extent.start - pass.to
      for (const moved of run) moved.start -= distance
      this.#observer.moved?.(run, length)
      budget -= length
      pass.to += length
      pass.at = run.at(-1)!.next
    }
    this.#usedBytes = pass.to
    this.#pass = undefined
    this.#observer.compacted?.()
    return true
  }

  /** Puts `items` side by side from `start` on; `previous` is what lies before them. */
  #insertAll(items: readonly ExtentItem[], start: number, previous: Extent | undefined): Extent[] {
    let before = previous
    let end = start
    return items.map(({ length, sample, serial }) => {
      const extent: Extent = {
        start: end,
        length,
        state: 'reserved',
        sample,
        serial,
        zone: this,
        previous: undefined,
        next: undefined,
      }
      this.#insert(extent, before)
      before = extent
      end += length
      return extent
    })
  }

  #insert(extent: Extent, previous: Extent | undefined): void {
    extent.previous = previous
    extent.next = previous ? previous.next : this.#first
    if (extent.next) extent.next.previous = extent
    else this.#last = extent
    if (previous) previous.next = extent
    else this.#first = extent
    this.#liveBytes += extent.length
  }

  #unlink(extent: Extent): void {
    if (extent.previous) extent.previous.next = extent.next
    else this.#first = extent.next
    if (extent.next) extent.next.previous = extent.previous
    else this.#last = extent.previous
  }

  /** Takes the run of `done` extents at `extent` out of the list; returns what follows it. */
  #evictRun(extent: Extent): Extent | undefined {
    const run: Extent[] = []
    let at: Extent | undefined = extent
    while (at?.state === 'done') {
      run.push(at)
      this.#doneBytes -= at.length
      const following: Extent | undefined = at.next
      this.#unlink(at)
      at = following
    }
    this.#observer.evicted?.(run)
    return at
  }
}

const isMovable = ({ state }: Extent): boolean => state === 'ready' || state === 'placed'

/** The movable extents that lie side by side from `first` on, up to about `maxBytes`; the first one always. */
function movableRun(first: Extent, maxBytes: number): Extent[] {
  const run: Extent[] = []
  let end = first.start
  let at: Extent | undefined = first
  while (at && isMovable(at) && at.start === end && (run.length === 0 || end - first.start < maxBytes)) {
    run.push(at)
    end += at.length
    at = at.next
  }
  return run
}

function sumLengths(items: readonly ExtentItem[]): number {
  let bytes = 0
  for (const { length } of items) bytes += length
  return bytes
}
