/** What an object of an arriving copy is: still to be fetched, handed out to be fetched, or there and proven. */
const TO_FETCH = 0
const TAKEN = 1
const THERE = 2

interface Reader {
  /** Ids in the order in which this reader will use them; `position` is the first that was not looked at. */
  readonly order: number[]
  position: number
}

/**
 * The order in which a staging fetches the objects that its readers need first: objects that somebody waits for,
 * oldest first; then the readers' orders, one object of each reader in turn, so that none waits for another's whole
 * list. What no reader named follows in the order of the listing, which is the caller's.
 *
 * Objects are ids of the manifest, integers from 1. Nothing is handed out twice.
 */
export class OrderOfNeed<ReaderName> {
  readonly #states: Uint8Array
  readonly #readers = new Map<ReaderName, Reader>()
  /** Readers that wait, by object, oldest object first. */
  readonly #waiting = new Map<number, Set<ReaderName>>()
  /** Objects of `#waiting` that were not handed out. */
  readonly #wanted = new Set<number>()
  #turn = 0

  /** `maxId` is the largest id of the manifest; objects in `there` need not be fetched. */
  constructor(maxId: number, there: Iterable<number>) {
    this.#states = new Uint8Array(maxId + 1)
    for (const id of there) this.#states[id] = THERE
  }

  isThere(id: number): boolean {
    return this.#states[id] === THERE
  }

  /** Readers that are known, for the status. */
  get readerCount(): number {
    return this.#readers.size
  }

  get waitingCount(): number {
    return this.#waiting.size
  }

  /** Adds to the end of a reader's order. */
  addOrder(reader: ReaderName, ids: readonly number[]): void {
    const known = this.#readerOf(reader)
    if (known.position === known.order.length) known.position = known.order.length = 0
    for (const id of ids) known.order.push(id)
  }

  /** Notes that a reader waits for an object, which is fetched next. Returns whether it is there already. */
  want(reader: ReaderName, id: number): 'there' | 'coming' {
    if (this.isThere(id)) return 'there'
    this.#readerOf(reader)
    const waiting = this.#waiting.get(id)
    if (waiting) waiting.add(reader)
    else this.#waiting.set(id, new Set([reader]))
    if (this.#states[id] === TO_FETCH) this.#wanted.add(id)
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
  }

  /** What each reader said it will use and waits for, oldest first. */
  *describe(): Generator<{ reader: ReaderName; ordered: number; waitsFor: readonly number[] }> {
    for (const [reader, { order, position }] of this.#readers) {
      const waits = [...this.#waiting].filter(([, readers]) => readers.has(reader))
      yield { reader, ordered: order.length - position, waitsFor: waits.map(([id]) => id) }
    }
  }

  /** Takes the object that somebody has waited for longest; undefined when nobody waits. */
  takeWanted(): number | undefined {
    const [wanted] = this.#wanted
    if (wanted !== undefined) this.take(wanted)
    return wanted
  }

  /** Takes the next object of the readers' orders, of one reader after the other; undefined at their ends. */
  takeOrdered(): number | undefined {
    const readers = [...this.#readers.values()]
    for (let tried = 0; tried < readers.length; tried++) {
      const reader = readers[this.#turn++ % readers.length]!
      while (reader.position < reader.order.length) {
        const id = reader.order[reader.position++]!
        if (this.take(id)) return id
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

  /** An object is there. Returns the readers that waited for it. */
  arrived(id: number): readonly ReaderName[] {
    this.#states[id] = THERE
    this.#wanted.delete(id)
    const waiting = this.#waiting.get(id)
    this.#waiting.delete(id)
    return waiting ? [...waiting] : []
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
