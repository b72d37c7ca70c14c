import { allocatePages, type NumberKind } from '../../samples/plan/shared-pages.js'

/**
 * What an extent of the arena is doing.
 * evicted: its number is free for another · placed: has a place, nobody has been asked for it yet · reserved: bytes are
 * on their way · ready: arrived, not yet used ("unhit") · leased: a client reads it · kept: held for the next epoch ·
 * done: used ("hit"), may be evicted.
 * Only `done` is evicted; only `placed` and `ready` are moved.
 */
const STATES = ['evicted', 'placed', 'reserved', 'ready', 'leased', 'kept', 'done'] as const
/** What an extent is doing. */
type ExtentState = (typeof STATES)[number]

const NUMBER_OF_STATE = Object.fromEntries(STATES.map((state, number) => [state, number])) as Record<
  ExtentState,
  number
>

/** One entry of the metadata list, where a sample lies, by its number: 1 or more, and another's once it is evicted. */
export type Extent = number & { readonly isExtent: true }

/** What is to be placed. */
export interface ExtentItem {
  /** Bytes that the extent occupies. */
  readonly length: number
  readonly sample: number
}

/** Where an extent is put when it is made. */
interface ExtentPlace {
  /** Bytes from its end of the arena. */
  readonly start: number
  readonly isAtTop: boolean
}

/** What there may be of extents. */
interface ExtentLimits {
  /** Bytes of the arena. */
  readonly totalBytes: number
  /** Extents that there may well be at once. Room for them takes no memory before they are there. Default 1024. */
  readonly expectedCount?: number
}

const NONE = 0

/**
 * The metadata of all extents of an arena, in columns, for an arena of tiny samples has millions: 22 bytes each, 30 in
 * arenas of 4 GiB and more. Those of one end are linked in address order by the zone that has them.
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
  /** Numbers that have been given so far. */
  #count = 1
  /** The first evicted number; `next` leads to the others. */
  #firstFree = NONE

  constructor({ totalBytes, expectedCount = 1024 }: ExtentLimits) {
    const capacity = expectedCount + 1 // number 0 is none's
    this.#Places = totalBytes < 2 ** 32 ? Uint32Array : Float64Array
    this.#starts = allocatePages(this.#Places, capacity)
    this.#lengths = allocatePages(this.#Places, capacity)
    this.#samples = allocatePages(Uint32Array, capacity)
    this.#previous = allocatePages(Uint32Array, capacity)
    this.#next = allocatePages(Uint32Array, capacity)
    this.#states = allocatePages(Uint8Array, capacity)
    this.#tops = allocatePages(Uint8Array, capacity)
  }

  /** A new extent, `reserved`, in no list. */
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

  /** Gives its number free. */
  evict(extent: Extent): void {
    this.mark(extent, 'evicted')
    this.#next[extent] = this.#firstFree
    this.#firstFree = extent
  }

  /** Bytes from its own end of the arena. Changes when the extent is moved. */
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

  /** Whether it lies at the top end, with what is kept. */
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

  /** Has `second` follow `first`, each of which may be missing. */
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

/** The same numbers and room for more. */
function longer<Kind extends Uint32Array | Float64Array | Uint8Array>(
  Numbers: NumberKind<Kind>,
  source: Kind,
  length: number,
): Kind {
  const target = allocatePages(Numbers, length)
  target.set(source)
  return target
}
