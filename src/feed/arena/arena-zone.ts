import type { ArenaExtents, Extent, ExtentItem } from './arena-extents.js'

/** Moves `length` bytes from `from` to `to` (zone offsets, to < from, may overlap). */
export type MoveBytes = (from: number, to: number, length: number) => void

/** Receives every run that is evicted or moved; for traces and counters. */
export interface ZoneObserver {
  evicted?(run: readonly Extent[]): void
  moved?(run: readonly Extent[], bytes: number): void
  /** Called when a compaction is complete. */
  compacted?(): void
}

interface Hole {
  start: number
  length: number
  before: Extent | undefined
}

/** Maximum number of holes that a placement tries, so that odd sizes do not slow it down. */
const HOLES_TRIED = 64

/**
 * One end of the arena: a growing region of extents with holes. Moves no bytes itself; `slide` takes a function for
 * that.
 */
export class ArenaZone {
  readonly #extents: ArenaExtents
  readonly #isTop: boolean
  readonly #observer: ZoneObserver
  #first: Extent | undefined
  #last: Extent | undefined
  #usedBytes = 0
  #liveBytes = 0
  #doneBytes = 0
  #holes: Hole[] = []
  #nextHole = 0
  #pass: { at: Extent | undefined; to: number } | undefined

  constructor(extents: ArenaExtents, end: 'bottom' | 'top', observer: ZoneObserver = {}) {
    this.#extents = extents
    this.#isTop = end === 'top'
    this.#observer = observer
  }

  /** Distance from the zone's end to the end of its last extent, in bytes. */
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

  /** Yields the extents in address order. */
  *[Symbol.iterator](): Generator<Extent> {
    for (let at = this.#first; at; at = this.#extents.nextOf(at)) yield at
  }

  get isSliding(): boolean {
    return this.#pass !== undefined
  }

  /** Places extents side by side behind the last one; undefined if they would pass `limitBytes`. */
  append(items: readonly ExtentItem[], limitBytes: number): Extent[] | undefined {
    const length = sumLengths(items)
    if (this.#usedBytes + length > limitBytes) return undefined
    const start = this.#usedBytes
    this.#usedBytes += length
    return this.#insertAll(items, start, this.#last)
  }

  /** Places extents side by side in a hole that a sweep found; undefined if none fits. */
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
    // Too small for current sizes: the next sweep finds them again. Holes too small for a run stay for single samples.
    if (items.length === 1) this.#nextHole = end
    return undefined
  }

  /** Marks an extent as evictable. */
  finish(extent: Extent): void {
    const length = this.#extents.lengthOf(extent)
    this.#extents.mark(extent, 'done')
    this.#liveBytes -= length
    this.#doneBytes += length
  }

  /** Evicts runs of `done` extents; each becomes one hole. Returns whether it evicted anything. */
  sweep(): boolean {
    if (this.#pass) return false
    const extents = this.#extents
    let hasEvicted = false
    let end = 0
    let before: Extent | undefined
    this.#holes = []
    this.#nextHole = 0
    let at = this.#first
    while (at) {
      if (extents.stateOf(at) === 'done') {
        hasEvicted = true
        at = this.#evictRun(at)
        continue
      }
      const start = extents.startOf(at)
      if (start > end) this.#holes.push({ start: end, length: start - end, before })
      end = start + extents.lengthOf(at)
      before = at
      at = extents.nextOf(at)
    }
    this.#usedBytes = end
    return hasEvicted
  }

  /**
   * Compaction: evicts runs of `done` and moves runs of `placed` and `ready` to the front, about `maxBytes` per call at
   * most; other extents stay as walls. New extents that come between calls go behind the zone and are moved afterwards.
   * Returns whether the pass is complete.
   */
  slide(maxBytes: number, move: MoveBytes): boolean {
    if (!this.#pass) {
      this.#pass = { at: this.#first, to: 0 }
      this.#holes = []
      this.#nextHole = 0
    }
    const pass = this.#pass
    const extents = this.#extents
    let budget = maxBytes
    while (pass.at) {
      const extent: Extent = pass.at
      if (extents.stateOf(extent) === 'done') {
        pass.at = this.#evictRun(extent)
        continue
      }
      const start = extents.startOf(extent)
      if (!this.#isMovable(extent) || start === pass.to) {
        pass.to = start + extents.lengthOf(extent)
        pass.at = extents.nextOf(extent)
        continue
      }
      if (budget <= 0) return false
      const run = this.#movableRun(extent, budget)
      const length = run.reduce((bytes, each) => bytes + extents.lengthOf(each), 0)
      move(start, pass.to, length)
      const distance = start - pass.to
      for (const moved of run) extents.move(moved, extents.startOf(moved) - distance)
      this.#observer.moved?.(run, length)
      budget -= length
      pass.to += length
      pass.at = extents.nextOf(run.at(-1)!)
    }
    this.#usedBytes = pass.to
    this.#pass = undefined
    this.#observer.compacted?.()
    return true
  }

  /** Puts `items` side by side from `start` on; `previous` is the extent before them. */
  #insertAll(items: readonly ExtentItem[], start: number, previous: Extent | undefined): Extent[] {
    let before = previous
    let end = start
    return items.map((item) => {
      const extent = this.#extents.add(item, { start: end, isAtTop: this.#isTop })
      this.#insert(extent, before)
      before = extent
      end += item.length
      return extent
    })
  }

  #insert(extent: Extent, previous: Extent | undefined): void {
    const next = previous ? this.#extents.nextOf(previous) : this.#first
    this.#extents.link(previous, extent)
    this.#extents.link(extent, next)
    if (!previous) this.#first = extent
    if (!next) this.#last = extent
    this.#liveBytes += this.#extents.lengthOf(extent)
  }

  /** Unlinks the run of `done` extents at `extent`; returns the extent behind it. */
  #evictRun(extent: Extent): Extent | undefined {
    const extents = this.#extents
    const previous = extents.previousOf(extent)
    const run: Extent[] = []
    let at: Extent | undefined = extent
    while (at && extents.stateOf(at) === 'done') {
      run.push(at)
      this.#doneBytes -= extents.lengthOf(at)
      at = extents.nextOf(at)
    }
    extents.link(previous, at)
    if (!previous) this.#first = at
    if (!at) this.#last = previous
    this.#observer.evicted?.(run)
    for (const evicted of run) extents.evict(evicted)
    return at
  }

  #isMovable(extent: Extent): boolean {
    const state = this.#extents.stateOf(extent)
    return state === 'ready' || state === 'placed'
  }

  /** Adjacent movable extents from `first` on, up to about `maxBytes`; always includes `first`. */
  #movableRun(first: Extent, maxBytes: number): Extent[] {
    const extents = this.#extents
    const start = extents.startOf(first)
    const run: Extent[] = []
    let end = start
    let at: Extent | undefined = first
    while (at && this.#isMovable(at) && extents.startOf(at) === end) {
      if (run.length > 0 && end - start >= maxBytes) break
      run.push(at)
      end += extents.lengthOf(at)
      at = extents.nextOf(at)
    }
    return run
  }
}

function sumLengths(items: readonly ExtentItem[]): number {
  let bytes = 0
  for (const { length } of items) bytes += length
  return bytes
}
