import { allocatePages } from '../../samples/plan/shared-pages.js'
import type { ArenaExtents, Extent } from '../arena/arena-extents.js'

const EMPTY = 0

/**
 * Extents by their samples in a fixed number of places: a table of extents alone, as each knows its sample. Who fills it
 * leaves half of the places empty, so that a search is short.
 */
export class ExtentTable {
  /** Places, taken or not. */
  readonly capacity: number
  readonly #extents: ArenaExtents
  /** From where a sample belongs on, in a circle, there is no empty place before it. */
  readonly #places: Uint32Array

  /** `capacity` is a power of two. */
  constructor(extents: ArenaExtents, capacity: number) {
    this.#extents = extents
    this.#places = allocatePages(Uint32Array, capacity)
    this.capacity = capacity
  }

  has(sample: number): boolean {
    return this.#places[this.#find(sample)] !== EMPTY
  }

  put(extent: Extent): void {
    const last = this.capacity - 1
    let place = this.#homeOf(this.#extents.sampleOf(extent))
    while (this.#places[place] !== EMPTY) place = (place + 1) & last
    this.#places[place] = extent
  }

  /** Removes and returns the extent of a sample. */
  take(sample: number): Extent | undefined {
    return this.takeAt(this.#find(sample))
  }

  /** Removes and returns the extent at a place; another may have moved up to that place then. */
  takeAt(place: number): Extent | undefined {
    const extent = this.#places[place] as Extent
    if (extent === EMPTY) return undefined
    this.#clear(place)
    return extent
  }

  /** The place of a sample, or the empty one that ends the search for it. */
  #find(sample: number): number {
    const last = this.capacity - 1
    let place = this.#homeOf(sample)
    for (;;) {
      const extent = this.#places[place] as Extent
      if (extent === EMPTY || this.#extents.sampleOf(extent) === sample) return place
      place = (place + 1) & last
    }
  }

  /** Where the search for a sample begins. Neighbours are spread, for kept samples may be all of a stretch. */
  #homeOf(sample: number): number {
    return (Math.imul(sample, 0x9e3779b1) >>> 7) & (this.capacity - 1)
  }

  /** Empties a place, and moves up what was put behind it because it was taken. */
  #clear(emptied: number): void {
    const last = this.capacity - 1
    let hole = emptied
    for (let place = (hole + 1) & last; this.#places[place] !== EMPTY; place = (place + 1) & last) {
      const extent = this.#places[place] as Extent
      const home = this.#homeOf(this.#extents.sampleOf(extent))
      if (((place - home) & last) < ((place - hole) & last)) continue
      this.#places[hole] = extent
      hole = place
    }
    this.#places[hole] = EMPTY
  }
}
