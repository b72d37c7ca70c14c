import type { ArenaExtents, Extent } from '../arena/arena-extents.js'
import { ExtentTable } from './extent-table.js'

const FIRST_CAPACITY = 1024

/** Places of the outgrown table to clear with each added sample; 2 would finish before the next growth. */
const PLACES_PER_ADD = 8

const NOTHING: Extent[] = []

/**
 * The kept extents, by sample. There are millions of tiny samples, for which a Map would take ten times the memory. No
 * step handles all of them in one go, as the feed's batches would have to wait: a half-full table moves into one of
 * twice its size bit by bit.
 */
export class KeptSamples {
  readonly #extents: ArenaExtents
  #table: ExtentTable
  /** The part not moved yet; its places before `#cleared` are empty. */
  #outgrown: ExtentTable | undefined
  #cleared = 0
  #size = 0
  #bytes = 0

  constructor(extents: ArenaExtents) {
    this.#extents = extents
    this.#table = new ExtentTable(extents, FIRST_CAPACITY)
  }

  get size(): number {
    return this.#size
  }

  get bytes(): number {
    return this.#bytes
  }

  has(sample: number): boolean {
    return this.#table.has(sample) || (this.#outgrown?.has(sample) ?? false)
  }

  add(extent: Extent): void {
    if (2 * this.#size >= this.#table.capacity) this.#replaceTable(2 * this.#table.capacity)
    this.#table.put(extent)
    for (const moved of this.#clearOutgrown(PLACES_PER_ADD)) this.#table.put(moved)
    this.#size++
    this.#bytes += this.#extents.lengthOf(extent)
  }

  /** Removes and returns the extent of a sample. */
  take(sample: number): Extent | undefined {
    const extent = this.#table.take(sample) ?? this.#outgrown?.take(sample)
    if (extent !== undefined) this.#leave(extent)
    return extent
  }

  /** Removes and returns the extents in the next `places` places. Repeated calls return all, if none are added. */
  takeNext(places: number): Extent[] {
    if (!this.#outgrown) this.#replaceTable(this.#table.capacity) // as large, in case some are added between calls
    const taken = this.#clearOutgrown(places)
    for (const extent of taken) this.#leave(extent)
    return taken
  }

  #leave(extent: Extent): void {
    this.#size--
    this.#bytes -= this.#extents.lengthOf(extent)
  }

  /** Replaces the table; its extents move over bit by bit. */
  #replaceTable(capacity: number): void {
    const rest = this.#clearOutgrown(Number.POSITIVE_INFINITY) // empty unless a caller takes and then adds
    this.#outgrown = this.#table
    this.#cleared = 0
    this.#table = new ExtentTable(this.#extents, capacity)
    for (const extent of rest) this.#table.put(extent)
  }

  /** Removes and returns the extents in the next places of the outgrown table. */
  #clearOutgrown(places: number): Extent[] {
    const outgrown = this.#outgrown
    if (!outgrown) return NOTHING
    const found: Extent[] = []
    const end = Math.min(this.#cleared + places, outgrown.capacity)
    for (; this.#cleared < end; this.#cleared++)
      for (let extent = outgrown.takeAt(this.#cleared); extent; extent = outgrown.takeAt(this.#cleared))
        found.push(extent)
    if (end === outgrown.capacity) this.#outgrown = undefined
    return found
  }
}
