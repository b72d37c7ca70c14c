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
}

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
  #turn = 0

  /** `maxId`: largest id of the manifest; `there`: objects that need not be fetched. */
  constructor(maxId: number, there: Iterable<number>) {
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

  /** Appends to a reader's order. */
  addOrder(reader: ReaderName, needs: readonly Need[]): void {
    const known = this.#readerOf(reader)
    if (known.position === known.order.length) known.position = known.order.length = 0
    for (const need of needs) known.order.push(need)
  }

  /**
   * Notes that a reader waits for something. A `wanted` need is fetched next, an `ordered` one after the reader's
   * earlier orders, a `listed` one in its turn. Returns `there` if the object is already there and verified.
   */
  want(reader: ReaderName, need: Need, urgency: Urgency = 'wanted'): 'there' | 'coming' {
    const id = idOf(need)
    if (this.isThere(id)) return 'there'
    this.#readerOf(reader)
    if (urgency === 'ordered') this.addOrder(reader, [need])
    if (typeof need !== 'number') {
      this.#rangeWaits.set(id, [...(this.#rangeWaits.get(id) ?? []), { reader, need }])
      if (urgency === 'wanted') this.#wanted.add(need)
      return 'coming'
    }
    const waiting = this.#waiting.get(id)
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
    for (const [reader, { order, position }] of this.#readers) {
      const objects = [...this.#waiting].filter(([, readers]) => readers.has(reader)).map(([id]) => id)
      const ranges = [...this.#rangeWaits.values()].flat().filter((wait) => wait.reader === reader)
      const waitsFor = [...objects, ...ranges.map(({ need }) => need.id)]
      yield { reader, ordered: order.length - position, waitsFor }
    }
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
    for (const { need } of over) this.#wanted.delete(need)
    if (left.length > 0) this.#rangeWaits.set(id, left)
    else this.#rangeWaits.delete(id)
    return over
  }

  #readerOf(name: ReaderName): Reader {
    let reader = this.#readers.get(name)
    if (reader === undefined) {
      reader = { order: [], position: 0 }
      this.#readers.set(name, reader)
    }
    return reader
  }
}

/** Id of the needed object, or of the object that a needed range belongs to. */
export function idOf(need: Need): number {
  return typeof need === 'number' ? need : need.id
}
