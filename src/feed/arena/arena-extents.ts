import { allocatePages, type NumberKind } from '../../samples/plan/shared-pages.js'

/**
 * State of an extent in the arena.
 * evicted: its number is free for reuse · placed: has a place, not requested yet · reserved: bytes are on their way ·
 * ready: arrived, not yet used ("unhit") · leased: a client reads it · kept: held for the next epoch · done: used
 * ("hit"), may be evicted.
 * Only `done` is evicted; only `placed` and `ready` are moved.
 */
const STATES = ['evicted', 'placed', 'reserved', 'ready', 'leased', 'kept', 'done'] as const
/** State of an extent. */
type ExtentState = (typeof STATES)[number]

const NUMBER_OF_STATE = Object.fromEntries(STATES.map((state, number) => [state, number])) as Record<
  ExtentState,
  number
>

/** Number (1 or more) of a metadata entry, which says where a sample lies. Reused once the extent is evicted. */
export type Extent = number & { readonly isExtent: true }

/** A sample to place. */
export interface ExtentItem {
  /** Size of the extent, in bytes. */
  readonly length: number
  readonly sample: number
}

/** Place of a new extent. */
interface ExtentPlace {
  /** Distance from its end of the arena, in bytes. */
  readonly start: number
  readonly isAtTop: boolean
}

/** Limits on extents. */
interface ExtentLimits {
  /** Size of the arena, in bytes. */
  readonly totalBytes: number
  /** Number of extents to expect at once. Room for them takes no memory until they exist. Default 1024. */
  readonly expectedCount?: number
}

const NONE = 0

/**
 * The metadata of all extents of an arena, in columns because an arena of tiny samples has millions: 22 bytes each, 30
 * in arenas of 4 GiB and more. The zone of each end links its extents in address order.
 */
export class ArenaExtents {
  readonly #Places: NumberKind<Uint32Array | Float64Array>
  #starts: Uint32Array | Float64Array
  #lengths: Uint32Array | Float64Array
  #samples: Uint32Array
  #previous: Uint32Array
  #next: Uint32Array
  #states: Uint8Array
  #tops: Uint8Array
  /** Next number never given out. */
  #count = 1
  /** The first evicted number; `next` leads to the others. */
  #firstFree = NONE

  constructor({ totalBytes, expectedCount = 1024 }: ExtentLimits) {
    const capacity = expectedCount + 1 // number 0 means none
    this.#Places = totalBytes < 2 ** 32 ? Uint32Array : Float64Array
    this.#starts = allocatePages(this.#Places, capacity)
    this.#lengths = allocatePages(this.#Places, capacity)
    this.#samples = allocatePages(Uint32Array, capacity)
    this.#previous = allocatePages(Uint32Array, capacity)
    this.#next = allocatePages(Uint32Array, capacity)
    this.#states = allocatePages(Uint8Array, capacity)
    this.#tops = allocatePages(Uint8Array, capacity)
  }

  /** Adds an extent, `reserved` and in no list. */
  add({ length, sample }: ExtentItem, { start, isAtTop }: ExtentPlace): Extent {
    const extent = this.#takeNumber()
    this.#starts[extent] = start
    this.#lengths[extent] = length
    this.#samples[extent] = sample
    this.#previous[extent] = NONE
    this.#next[extent] = NONE
    this.#tops[extent] = isAtTop ? 1 : 0
    this.mark(extent, 'reserved')
    return extent
  }

  /** Frees the extent's number for reuse. */
  evict(extent: Extent): void {
    this.mark(extent, 'evicted')
    this.#next[extent] = this.#firstFree
    this.#firstFree = extent
  }

  /** Distance from its own end of the arena, in bytes. Changes when the extent moves. */
  startOf(extent: Extent): number {
    return this.#starts[extent]!
  }

  lengthOf(extent: Extent): number {
    return this.#lengths[extent]!
  }

  sampleOf(extent: Extent): number {
    return this.#samples[extent]!
  }

  stateOf(extent: Extent): ExtentState {
    return STATES[this.#states[extent]!]!
  }

  /** Whether it lies at the top end, with the kept samples. */
  isAtTop(extent: Extent): boolean {
    return this.#tops[extent] === 1
  }

  mark(extent: Extent, state: ExtentState): void {
    this.#states[extent] = NUMBER_OF_STATE[state]
  }

  move(extent: Extent, start: number): void {
    this.#starts[extent] = start
  }

  previousOf(extent: Extent): Extent | undefined {
    return (this.#previous[extent] || undefined) as Extent | undefined
  }

  nextOf(extent: Extent): Extent | undefined {
    return (this.#next[extent] || undefined) as Extent | undefined
  }

  /** Makes `second` follow `first`; either may be undefined. */
  link(first: Extent | undefined, second: Extent | undefined): void {
    if (first) this.#next[first] = second ?? NONE
    if (second) this.#previous[second] = first ?? NONE
  }

  #takeNumber(): Extent {
    if (this.#firstFree !== NONE) {
      const extent = this.#firstFree
      this.#firstFree = this.#next[extent]!
      return extent as Extent
    }
    if (this.#count === this.#states.length) this.#grow()
    return this.#count++ as Extent
  }

  #grow(): void {
    const capacity = 2 * this.#count
    this.#starts = longer(this.#Places, this.#starts, capacity)
    this.#lengths = longer(this.#Places, this.#lengths, capacity)
    this.#samples = longer(Uint32Array, this.#samples, capacity)
    this.#previous = longer(Uint32Array, this.#previous, capacity)
    this.#next = longer(Uint32Array, this.#next, capacity)
    this.#states = longer(Uint8Array, this.#states, capacity)
    this.#tops = longer(Uint8Array, this.#tops, capacity)
  }
}

/** Copies the column into a longer one. */
function longer<Kind extends Uint32Array | Float64Array | Uint8Array>(
  Numbers: NumberKind<Kind>,
  source: Kind,
  length: number,
): Kind {
  const target = allocatePages(Numbers, length)
  target.set(source)
  return target
}
