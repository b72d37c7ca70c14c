import { fromBytes, toBytes } from '../byte-path.js'
import type { TarMember } from './tar-members.js'

/** Initial room, in members. */
const FIRST_MEMBERS = 64

/**
 * Members of a shard in columns: some 25 bytes and the name for each, where an object takes six times as much. They are
 * read in order, one by one.
 */
export class PackedMembers implements Iterable<TarMember> {
  #count = 0
  /** Start of each header, and size of the contents in bytes. */
  #places = new Float64Array(2 * FIRST_MEMBERS)
  /** Distance from the header to the contents, and end of the name. */
  #ends = new Uint32Array(2 * FIRST_MEMBERS)
  #isSparse = new Uint8Array(FIRST_MEMBERS)
  #names = new Uint8Array(16 * FIRST_MEMBERS)

  get count(): number {
    return this.#count
  }

  add({ name, headerAt, dataAt, length, isSparse }: TarMember): void {
    const at = this.#count
    if (at === this.#isSparse.length) {
      this.#places = grown(this.#places, 4 * at)
      this.#ends = grown(this.#ends, 4 * at)
      this.#isSparse = grown(this.#isSparse, 2 * at)
    }
    const bytes = toBytes(name)
    const nameAt = at === 0 ? 0 : this.#ends[2 * at - 1]!
    const nameEnd = nameAt + bytes.length
    if (nameEnd > this.#names.length) this.#names = grown(this.#names, 2 * nameEnd)
    this.#names.set(bytes, nameAt)
    this.#places.set([headerAt, length], 2 * at)
    this.#ends.set([dataAt - headerAt, nameEnd], 2 * at)
    this.#isSparse[at] = isSparse ? 1 : 0
    this.#count += 1
  }

  /** Frees unused room. */
  trim(): void {
    const count = this.#count
    this.#names = this.#names.slice(0, count === 0 ? 0 : this.#ends[2 * count - 1]!)
    this.#places = this.#places.slice(0, 2 * count)
    this.#ends = this.#ends.slice(0, 2 * count)
    this.#isSparse = this.#isSparse.slice(0, count)
  }

  *[Symbol.iterator](): Generator<TarMember> {
    let nameAt = 0
    for (let at = 0; at < this.#count; at++) {
      const [headerAt, length] = [this.#places[2 * at]!, this.#places[2 * at + 1]!]
      const nameEnd = this.#ends[2 * at + 1]!
      yield {
        name: fromBytes(this.#names.subarray(nameAt, nameEnd)),
        headerAt,
        dataAt: headerAt + this.#ends[2 * at]!,
        length,
        isSparse: this.#isSparse[at] === 1,
      }
      nameAt = nameEnd
    }
  }
}

function grown<Column extends Float64Array | Uint32Array | Uint8Array>(
  column: Column,
  length: number,
): Column {
  const larger = new (column.constructor as new (length: number) => Column)(length)
  larger.set(column)
  return larger
}
