import type { ArenaExtents, Extent } from '../arena/arena-extents.js'
import { allocatePages } from '../plan/shared-pages.js'

const FIRST_CAPACITY = 1024
const EMPTY = 0

/**
 * The extents that are kept, by their samples: a table of extents alone, as each knows its sample, with at most half of
 * its places taken. Of tiny samples there are millions, for which a Map would take ten times the memory.
 */
export class KeptSamples {
  readonly #extents: ArenaExtents
  /** Its length is a power of two; from where a sample belongs on, in a circle, there is no empty place before it. */
  #places = allocatePages(Uint32Array, FIRST_CAPACITY)
  #size = 0
  #bytes = 0

  constructor(extents: ArenaExtents) {
    this.#extents = extents
  }

  get size(): number {
    return this.#size
  }

  get bytes(): number {
    return this.#bytes
  }

  has(sample: number): boolean {
    return this.#places[this.#find(sample)] !== EMPTY
  }

  add(extent: Extent): void {
    if (2 * this.#size >= this.#places.length) this.#grow()
    this.#put(extent)
    this.#size++
    this.#bytes += this.#extents.lengthOf(extent)
  }

  /** Removes and returns the extent of a sample. */
  take(sample: number): Extent | undefined {
    const place = this.#find(sample)
    const extent = this.#places[place] as Extent
    if (extent === EMPTY) return undefined
    this.#clear(place)
    this.#size--
    this.#bytes -= this.#extents.lengthOf(extent)
    return extent
  }

  *[Symbol.iterator](): Generator<Extent> {
    for (const extent of this.#places) if (extent !== EMPTY) yield extent as Extent
  }

  /** The place of a sample, or the empty one that ends the search for it. */
  #find(sample: number): number {
    const last = this.#places.length - 1
    let place = this.#homeOf(sample)
    for (;;) {
      const extent = this.#places[place] as Extent
      if (extent === EMPTY || this.#extents.sampleOf(extent) === sample) return place
      place = (place + 1) & last
    }
  }

  /** Where the search for a sample begins. Neighbours are spread, for kept samples may be all of a stretch. */
  #homeOf(sample: number): number {
    return (Math.imul(sample, 0x9e3779b1) >>> 7) & (this.#places.length - 1)
  }

  #put(extent: Extent): void {
    const last = this.#places.length - 1
    let place = this.#homeOf(this.#extents.sampleOf(extent))
    while (this.#places[place] !== EMPTY) place = (place + 1) & last
    this.#places[place] = extent
  }

  /** Empties a place, and moves up what was put behind it because it was taken. */
  #clear(emptied: number): void {
    const last = this.#places.length - 1
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

  #grow(): void {
    const before = this.#places
    this.#places = allocatePages(Uint32Array, 2 * before.length)
    for (const extent of before) if (extent !== EMPTY) this.#put(extent as Extent)
  }
}
