import type { Urgency } from '../../model/urgency.js'
import type { ByteRange } from './block-set.js'

/** State of an object of an arriving copy: still to fetch, handed out for fetching, or there and verified. */
const TO_FETCH = 0
const TAKEN = 1
const THERE = 2

/** A range of an object that a reader takes as soon as its bytes are written. */
export interface RangeNeed extends ByteRange {
  readonly id: number
}

/** A reader's need: a verified object, or a range of one. */
export type Need = number | RangeNeed

interface Reader {
  /** Needs that this reader announced, in order; `position` is the first not looked at yet. */
  readonly order: Need[]
  position: number
  /** Number of its entries in the waits for objects and ranges. */
  waits: number
}

/**
 * How many needs all readers together may have ordered, and wait for. Each has an equal share: any user of the machine
 * may be a reader, and must not fill the memory of the stager.
 */
const MAX_NEEDS = { ordered: 2 ** 20, waits: 2 ** 16 }
type Limits = Readonly<typeof MAX_NEEDS>

/** A range and the reader that waits for it. */
interface RangeWait<ReaderName> {
  readonly reader: ReaderName
  readonly need: RangeNeed
}

/**
 * The order in which a staging fetches for its readers: first what a reader waits for, longest wait first; then the
 * readers' orders, one need of each reader in turn, so that no reader waits for another's whole list. Objects that no
 * reader named follow in the order of the listing, which the caller keeps.
 *
 * Objects are ids of the manifest, integers from 1. No object is handed out twice; the caller knows which bytes of a
 * range are still to be fetched.
 */
export class OrderOfNeed<ReaderName> {
  readonly #states: Uint8Array
  readonly #readers = new Map<ReaderName, Reader>()
  /** Readers that wait, by object, oldest object first. */
  readonly #waiting = new Map<number, Set<ReaderName>>()
  /** Ranges that readers wait for, by object. */
  readonly #rangeWaits = new Map<number, RangeWait<ReaderName>[]>()
  /** Needs that a reader waits for and that were not handed out yet. */
  readonly #wanted = new Set<Need>()
  readonly #most: Limits
  #turn = 0

  /** `maxId`: largest id of the manifest; `there`: objects that need not be fetched. */
  constructor(maxId: number, there: Iterable<number>, most: Limits = MAX_NEEDS) {
    this.#most = most
    this.#states = new Uint8Array(maxId + 1)
    for (const id of there) this.#states[id] = THERE
  }

  /** Whether the object has not been handed out yet. */
  isToFetch(id: number): boolean {
    return this.#states[id] === TO_FETCH
  }

  isThere(id: number): boolean {
    return this.#states[id] === THERE
  }

  /** Whether readers announced anything that was not looked at yet. */
  get hasOrders(): boolean {
    return [...this.#readers.values()].some(({ order, position }) => position < order.length)
  }

  /** Number of known readers, for the status. */
  get readerCount(): number {
    return this.#readers.size
  }

  /** Appends to a reader's order what is not there yet. Beyond its share the rest is left out. */
  addOrder(reader: ReaderName, needs: readonly Need[]): void {
    const known = this.#readerOf(reader)
    if (known.position * 2 >= known.order.length) {
      known.order.splice(0, known.position)
      known.position = 0
    }
    const most = this.#shareOf('ordered')
    for (const need of needs) {
      if (known.order.length - known.position >= most) return
      if (!this.isThere(idOf(need))) known.order.push(need)
    }
  }

  /**
   * Notes that a reader waits for something. A `wanted` need is fetched next, an `ordered` one after the reader's
   * earlier orders, a `listed` one in its turn. Returns `there` if the object is already there and verified, and
   * `unnoted` if the reader waits for its share already: the manifest will tell it.
   */
  want(reader: ReaderName, need: Need, urgency: Urgency = 'wanted'): 'there' | 'coming' | 'unnoted' {
    const id = idOf(need)
    if (this.isThere(id)) return 'there'
    const known = this.#readerOf(reader)
    const waiting = typeof need === 'number' ? this.#waiting.get(id) : undefined
    const isNew = waiting?.has(reader) !== true
    if (isNew && known.waits >= this.#shareOf('waits')) return 'unnoted'
    if (isNew) known.waits += 1
    if (urgency === 'ordered') this.addOrder(reader, [need])
    if (typeof need !== 'number') {
      const waits = this.#rangeWaits.get(id)
      if (waits) waits.push({ reader, need })
      else this.#rangeWaits.set(id, [{ reader, need }])
      if (urgency === 'wanted') this.#wanted.add(need)
      return 'coming'
    }
    if (waiting) waiting.add(reader)
    else this.#waiting.set(id, new Set([reader]))
    if (urgency === 'wanted' && this.#states[id] === TO_FETCH) this.#wanted.add(id)
    return 'coming'
  }

  /** Forgets a reader that has gone. Objects that only it needed are fetched in the order of the listing. */
  forget(reader: ReaderName): void {
    this.#readers.delete(reader)
    for (const [id, waiting] of this.#waiting) {
      waiting.delete(reader)
      if (waiting.size > 0) continue
      this.#waiting.delete(id)
      this.#wanted.delete(id)
    }
    for (const id of [...this.#rangeWaits.keys()]) this.#endRangeWaits(id, (wait) => wait.reader === reader)
  }

  /** The orders and waits of each reader, oldest first. */
  *describe(): Generator<{ reader: ReaderName; ordered: number; waitsFor: readonly number[] }> {
    const waits = new Map<ReaderName, number[]>()
    for (const reader of this.#readers.keys()) waits.set(reader, [])
    for (const [id, readers] of this.#waiting) for (const reader of readers) waits.get(reader)?.push(id)
    for (const [id, ranges] of this.#rangeWaits) for (const { reader } of ranges) waits.get(reader)?.push(id)
    for (const [reader, { order, position }] of this.#readers)
      yield { reader, ordered: order.length - position, waitsFor: waits.get(reader)! }
  }

  /** Takes the need that a reader has waited for longest; undefined if no reader waits. */
  takeWanted(): Need | undefined {
    const [wanted] = this.#wanted
    if (wanted === undefined) return undefined
    this.#wanted.delete(wanted)
    if (typeof wanted === 'number') this.take(wanted)
    return wanted
  }

  /** Takes the next need from the readers' orders, one reader after the other; undefined when all orders are done. */
  takeOrdered(): Need | undefined {
    const readers = [...this.#readers.values()]
    for (let tried = 0; tried < readers.length; tried++) {
      const reader = readers[this.#turn++ % readers.length]!
      while (reader.position < reader.order.length) {
        const need = reader.order[reader.position++]!
        if (typeof need === 'number' ? this.take(need) : !this.isThere(need.id)) return need
      }
    }
    return undefined
  }

  /** Takes an object that the listing has reached. False: it was taken before. */
  take(id: number): boolean {
    if (this.#states[id] !== TO_FETCH) return false
    this.#states[id] = TAKEN
    this.#wanted.delete(id)
    return true
  }

  /** Notes that an object is there. Returns the readers that waited for it, and what each waited for. */
  arrived(id: number): readonly { readonly reader: ReaderName; readonly need: Need }[] {
    this.#states[id] = THERE
    this.#wanted.delete(id)
    const waiting = [...(this.#waiting.get(id) ?? [])].map((reader) => ({ reader, need: id }))
    this.#waiting.delete(id)
    for (const { reader } of waiting) this.#endWait(reader)
    return [...waiting, ...this.#endRangeWaits(id, () => true)]
  }

  /** Notes that bytes of an object were written. Returns the waits for ranges that are now there, by `isWritten`. */
  wrote(id: number, isWritten: (range: ByteRange) => boolean): readonly RangeWait<ReaderName>[] {
    return this.#rangeWaits.has(id) ? this.#endRangeWaits(id, ({ need }) => isWritten(need)) : []
  }

  #endRangeWaits(
    id: number,
    isOver: (wait: RangeWait<ReaderName>) => boolean,
  ): readonly RangeWait<ReaderName>[] {
    const { over = [], left = [] } = Object.groupBy(this.#rangeWaits.get(id) ?? [], (wait) =>
      isOver(wait) ? 'over' : 'left',
    )
    for (const { reader, need } of over) {
      this.#wanted.delete(need)
      this.#endWait(reader)
    }
    if (left.length > 0) this.#rangeWaits.set(id, left)
    else this.#rangeWaits.delete(id)
    return over
  }

  #endWait(name: ReaderName): void {
    const reader = this.#readers.get(name)
    if (reader) reader.waits -= 1
  }

  #shareOf(kind: keyof Limits): number {
    return Math.ceil(this.#most[kind] / this.#readers.size)
  }

  #readerOf(name: ReaderName): Reader {
    let reader = this.#readers.get(name)
    if (reader === undefined) {
      reader = { order: [], position: 0, waits: 0 }
      this.#readers.set(name, reader)
    }
    return reader
  }
}

/** Id of the needed object, or of the object that a needed range belongs to. */
export function idOf(need: Need): number {
  return typeof need === 'number' ? need : need.id
}
