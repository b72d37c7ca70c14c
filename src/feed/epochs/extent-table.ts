import { allocatePages } from '../../samples/plan/shared-pages.js'
import type { ArenaExtents, Extent } from '../arena/arena-extents.js'

const EMPTY = 0

/**
 * Hash table of extents by sample, with a fixed number of places. It stores only extents, as each knows its sample. The
 * caller leaves half of the places empty, so that searches are short.
 */
export class ExtentTable {
  /** Number of places, taken or not. */
  readonly capacity: number
  readonly #extents: ArenaExtents
  /** No empty place lies between a sample's home and its place, going around in a circle. */
  readonly #places: Uint32Array

  /** `capacity` must be a power of two. */
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

  /** Removes and returns the extent at a place; another may then move up into it. */
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

  /** The place where the search for a sample begins. Neighbors are spread, as kept samples may be one whole stretch. */
  #homeOf(sample: number): number {
    return (Math.imul(sample, 0x9e3779b1) >>> 7) & (this.capacity - 1)
  }

  /** Empties a place, and moves up extents that were displaced behind it. */
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
