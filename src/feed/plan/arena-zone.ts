/**
 * What an extent of the arena is doing.
 * reserved: bytes are on their way · ready: arrived, not yet used ("unhit") · leased: a client reads it ·
 * kept: held for the next epoch · done: used ("hit"), may be evicted.
 * Only `done` is evicted and only `ready` is moved.
 */
export type ExtentState = 'reserved' | 'ready' | 'leased' | 'kept' | 'done'

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

/** One end of the arena: a growing region of extents with holes. */
export interface ArenaZone {
  /** Bytes from the zone's end to behind its last extent. */
  readonly usedBytes: number
  /** Bytes in extents that are not `done`. */
  readonly liveBytes: number
  /** Bytes in `done` extents that a sweep would evict. */
  readonly doneBytes: number
  readonly first: Extent | undefined
  /** Places extents side by side behind the last one, or undefined when they would pass `limitBytes`. */
  append(items: readonly ExtentItem[], limitBytes: number): Extent[] | undefined
  /** Places extents side by side into a hole that a sweep found. */
  fill(items: readonly ExtentItem[]): Extent[] | undefined
  /** Marks an extent as evictable. */
  finish(extent: Extent): void
  /** Evicts runs of `done` extents; each becomes one hole. Returns whether anything was evicted. */
  sweep(): boolean
  /**
   * Compaction: evicts runs of `done` and moves runs of `ready` to the front, at most about `maxBytes` per call;
   * other extents stay as walls. Between calls, new extents go behind the zone and are moved afterwards.
   * Returns whether the pass is complete.
   */
  slide(maxBytes: number, move: MoveBytes): boolean
  readonly isSliding: boolean
}

interface Hole {
  start: number
  length: number
  before: Extent | undefined
}

/** How many holes a placement looks at: bounded, so that odd sizes do not make it slow. */
const HOLES_TRIED = 64

/** An empty zone. It moves no bytes itself: `slide` is told how. */
export function createArenaZone(observer: ZoneObserver = {}): ArenaZone {
  let first: Extent | undefined
  let last: Extent | undefined
  let usedBytes = 0
  let liveBytes = 0
  let doneBytes = 0
  let holes: Hole[] = []
  let nextHole = 0
  let pass: { at: Extent | undefined; to: number } | undefined

  const insert = (extent: Extent, previous: Extent | undefined) => {
    extent.previous = previous
    extent.next = previous ? previous.next : first
    if (extent.next) extent.next.previous = extent
    else last = extent
    if (previous) previous.next = extent
    else first = extent
    liveBytes += extent.length
  }
  /** Puts `items` side by side from `start` on; `previous` is what lies before them. */
  const insertAll = (items: readonly ExtentItem[], start: number, previous: Extent | undefined): Extent[] => {
    let before = previous
    let end = start
    return items.map(({ length, sample, serial }) => {
      const extent: Extent = {
        start: end,
        length,
        state: 'reserved',
        sample,
        serial,
        zone,
        previous: undefined,
        next: undefined,
      }
      insert(extent, before)
      before = extent
      end += length
      return extent
    })
  }
  const unlink = (extent: Extent) => {
    if (extent.previous) extent.previous.next = extent.next
    else first = extent.next
    if (extent.next) extent.next.previous = extent.previous
    else last = extent.previous
  }
  /** Takes the run of `done` extents at `extent` out of the list; returns what follows it. */
  const evictRun = (extent: Extent): Extent | undefined => {
    const run: Extent[] = []
    let at: Extent | undefined = extent
    while (at?.state === 'done') {
      run.push(at)
      doneBytes -= at.length
      const following: Extent | undefined = at.next
      unlink(at)
      at = following
    }
    observer.evicted?.(run)
    return at
  }

  const zone: ArenaZone = {
    get usedBytes() {
      return usedBytes
    },
    get liveBytes() {
      return liveBytes
    },
    get doneBytes() {
      return doneBytes
    },
    get first() {
      return first
    },
    get isSliding() {
      return pass !== undefined
    },
    append(items, limitBytes) {
      const length = sumLengths(items)
      if (usedBytes + length > limitBytes) return undefined
      const start = usedBytes
      usedBytes += length
      return insertAll(items, start, last)
    },
    fill(items) {
      if (pass) return undefined
      const length = sumLengths(items)
      const end = Math.min(holes.length, nextHole + HOLES_TRIED)
      for (let i = nextHole; i < end; i++) {
        const hole = holes[i]!
        if (hole.length < length) continue
        const extents = insertAll(items, hole.start, hole.before)
        hole.start += length
        hole.length -= length
        hole.before = extents.at(-1)
        while (nextHole < holes.length && holes[nextHole]!.length === 0) nextHole++
        return extents
      }
      // Too small for the sizes of today: the next sweep finds them again. What a run leaves is for single samples.
      if (items.length === 1) nextHole = end
      return undefined
    },
    finish(extent) {
      extent.state = 'done'
      liveBytes -= extent.length
      doneBytes += extent.length
    },
    sweep() {
      if (pass) return false
      let hasEvicted = false
      let end = 0
      holes = []
      nextHole = 0
      let at = first
      while (at) {
        if (at.state === 'done') {
          hasEvicted = true
          at = evictRun(at)
          continue
        }
        if (at.start > end) holes.push({ start: end, length: at.start - end, before: at.previous })
        end = at.start + at.length
        at = at.next
      }
      usedBytes = end
      return hasEvicted
    },
    slide(maxBytes, move) {
      if (!pass) {
        pass = { at: first, to: 0 }
        holes = []
        nextHole = 0
      }
      let budget = maxBytes
      while (pass.at) {
        const extent: Extent = pass.at
        if (extent.state === 'done') {
          pass.at = evictRun(extent)
          continue
        }
        if (extent.state !== 'ready' || extent.start === pass.to) {
          pass.to = extent.start + extent.length
          pass.at = extent.next
          continue
        }
        if (budget <= 0) return false
        const run: Extent[] = []
        const from = extent.start
        let end = from
        let at: Extent | undefined = extent
        while (at && at.state === 'ready' && at.start === end && (run.length === 0 || end - from < budget)) {
          run.push(at)
          end += at.length
          at = at.next
        }
        move(from, pass.to, end - from)
        for (const moved of run) moved.start -= from - pass.to
        observer.moved?.(run, end - from)
        budget -= end - from
        pass.to += end - from
        pass.at = at
      }
      usedBytes = pass.to
      pass = undefined
      observer.compacted?.()
      return true
    },
  }
  return zone
}

function sumLengths(items: readonly ExtentItem[]): number {
  return items.reduce((sum, { length }) => sum + length, 0)
}
