import { fromBytes, toBytes } from '../byte-path.js'
import type { TarMember, TarMemberKind } from './tar-members.js'

const KINDS: readonly TarMemberKind[] = ['file', 'sparse', 'hard-link', 'symbolic-link']

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
  #kinds = new Uint8Array(FIRST_MEMBERS)
  #names = new Uint8Array(16 * FIRST_MEMBERS)

  get count(): number {
    return this.#count
  }

  add({ name, headerAt, dataAt, length, kind }: TarMember): void {
    const at = this.#count
    if (at === this.#kinds.length) {
      this.#places = grown(this.#places, 4 * at)
      this.#ends = grown(this.#ends, 4 * at)
      this.#kinds = grown(this.#kinds, 2 * at)
    }
    const bytes = toBytes(name)
    const nameAt = at === 0 ? 0 : this.#ends[2 * at - 1]!
    const nameEnd = nameAt + bytes.length
    if (nameEnd > this.#names.length) this.#names = grown(this.#names, 2 * nameEnd)
    this.#names.set(bytes, nameAt)
    this.#places.set([headerAt, length], 2 * at)
    this.#ends.set([dataAt - headerAt, nameEnd], 2 * at)
    this.#kinds[at] = KINDS.indexOf(kind)
    this.#count += 1
  }

  /** Frees unused room. */
  trim(): void {
    const count = this.#count
    this.#names = this.#names.slice(0, count === 0 ? 0 : this.#ends[2 * count - 1]!)
    this.#places = this.#places.slice(0, 2 * count)
    this.#ends = this.#ends.slice(0, 2 * count)
    this.#kinds = this.#kinds.slice(0, count)
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
        kind: KINDS[this.#kinds[at]!]!,
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
