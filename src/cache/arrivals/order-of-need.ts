import type { Urgency } from '../../model/urgency.js'
import type { ByteRange } from './block-set.js'

/** What an object of an arriving copy is: still to be fetched, handed out to be fetched, or there and proven. */
const TO_FETCH = 0
const TAKEN = 1
const THERE = 2

/** A range of an object that a reader takes as soon as its bytes are written. */
export interface RangeNeed extends ByteRange {
  readonly id: number
}

/** What a reader needs: an object, proven, or a range of one. */
export type Need = number | RangeNeed

interface Reader {
  /** What this reader will use, in that order; `position` is the first that was not looked at. */
  readonly order: Need[]
  position: number
}

/** A range and who waits for it. */
interface RangeWait<ReaderName> {
  readonly reader: ReaderName
  readonly need: RangeNeed
}

/**
 * The order in which a staging fetches what its readers need first: what somebody waits for, oldest first; then the
 * readers' orders, one need of each reader in turn, so that none waits for another's whole list. What no reader named
 * follows in the order of the listing, which is the caller's.
 *
 * Objects are ids of the manifest, integers from 1. No object is handed out twice; which bytes of a range are still to
 * be fetched is the caller's to know.
 */
export class OrderOfNeed<ReaderName> {
  readonly #states: Uint8Array
  readonly #readers = new Map<ReaderName, Reader>()
  /** Readers that wait, by object, oldest object first. */
  readonly #waiting = new Map<number, Set<ReaderName>>()
  /** Ranges that readers wait for, by object. */
  readonly #rangeWaits = new Map<number, RangeWait<ReaderName>[]>()
  /** What is waited for and was not handed out. */
  readonly #wanted = new Set<Need>()
  #turn = 0

  /** `maxId` is the largest id of the manifest; objects in `there` need not be fetched. */
  constructor(maxId: number, there: Iterable<number>) {
    this.#states = new Uint8Array(maxId + 1)
    for (const id of there) this.#states[id] = THERE
  }

  /** Whether nobody was told to fetch it yet. */
  isToFetch(id: number): boolean {
    return this.#states[id] === TO_FETCH
  }

  isThere(id: number): boolean {
    return this.#states[id] === THERE
  }

  /** Whether readers will use something that was not looked at yet. */
  get hasOrders(): boolean {
    return [...this.#readers.values()].some(({ order, position }) => position < order.length)
  }

  /** Readers that are known, for the status. */
  get readerCount(): number {
    return this.#readers.size
  }

  get waitingCount(): number {
    return this.#waiting.size
  }

  /** Adds to the end of a reader's order. */
  addOrder(reader: ReaderName, needs: readonly Need[]): void {
    const known = this.#readerOf(reader)
    if (known.position === known.order.length) known.position = known.order.length = 0
    for (const need of needs) known.order.push(need)
  }

  /**
   * Notes that a reader waits for something: what is `wanted` is fetched next, what is `ordered` after what the reader
   * ordered before, what is `listed` in its turn. Returns whether it is there, proven, already.
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

  /** A reader has gone: what only it needed is fetched when the listing comes to it. */
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

  /** What each reader said it will use and waits for, oldest first. */
  *describe(): Generator<{ reader: ReaderName; ordered: number; waitsFor: readonly number[] }> {
    for (const [reader, { order, position }] of this.#readers) {
      const objects = [...this.#waiting].filter(([, readers]) => readers.has(reader)).map(([id]) => id)
      const ranges = [...this.#rangeWaits.values()].flat().filter((wait) => wait.reader === reader)
      const waitsFor = [...objects, ...ranges.map(({ need }) => need.id)]
      yield { reader, ordered: order.length - position, waitsFor }
    }
  }

  /** Takes what somebody has waited for longest; undefined when nobody waits. */
  takeWanted(): Need | undefined {
    const [wanted] = this.#wanted
    if (wanted === undefined) return undefined
    this.#wanted.delete(wanted)
    if (typeof wanted === 'number') this.take(wanted)
    return wanted
  }

  /** Takes the next of the readers' orders, of one reader after the other; undefined at their ends. */
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

  /** Takes an object that the listing comes to. False: it was taken before. */
  take(id: number): boolean {
    if (this.#states[id] !== TO_FETCH) return false
    this.#states[id] = TAKEN
    this.#wanted.delete(id)
    return true
  }

  /** An object is there. Returns who waited for what of it. */
  arrived(id: number): readonly { readonly reader: ReaderName; readonly need: Need }[] {
    this.#states[id] = THERE
    this.#wanted.delete(id)
    const waiting = [...(this.#waiting.get(id) ?? [])].map((reader) => ({ reader, need: id }))
    this.#waiting.delete(id)
    return [...waiting, ...this.#endRangeWaits(id, () => true)]
  }

  /** Bytes of an object were written. Returns who waited for ranges of which `isWritten` says that they are there. */
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

/** The object that is needed, or of which a range is. */
export function idOf(need: Need): number {
  return typeof need === 'number' ? need : need.id
}
