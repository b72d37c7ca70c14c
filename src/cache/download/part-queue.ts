import type { Part } from '../../proof/plan-parts.js'
import type { PartedObject, Portion } from './parted-object.js'

/** Bytes of a part to fetch now. */
interface QueuedPortion {
  readonly parted: PartedObject
  readonly portion: Portion
}

/**
 * Parts of large objects, in the order in which their objects were taken, so that few files are half done at a time.
 * Nodes that stage together wait for each other's parts, so all follow this order, no matter which object opened first.
 */
export class PartQueue {
  #parts: { readonly parted: PartedObject; readonly part: Part }[] = []
  /** Each object's place in the order of taking, counted from 0. */
  readonly #turns = new Map<number, number>()
  #taken = 0
  /** Objects that were taken but whose parts are not known yet, in the order of taking. */
  readonly #opening = new Set<number>()
  /** Objects that a reader waits for. */
  readonly #hurried = new Set<number>()

  get isEmpty(): boolean {
    return this.#parts.length === 0
  }

  /** Notes that an object was taken: its parts will be added, and come before those of objects taken later. */
  expect(id: number): void {
    if (this.#turns.has(id)) return
    this.#turns.set(id, this.#taken++)
    this.#opening.add(id)
  }

  /** Adds parts of an object in its turn, or before all others if a reader waits for it. */
  add(parted: PartedObject, parts: readonly Part[]): void {
    const { id } = parted.entry
    this.expect(id)
    this.#opening.delete(id)
    const turn = this.#turnOf(id)
    const isLater = (other: number) => !this.#hurried.has(other) && this.#turnOf(other) > turn
    const at = this.#hurried.has(id) ? 0 : this.#parts.findIndex(({ parted: { entry } }) => isLater(entry.id))
    const added = parts.map((part) => ({ parted, part }))
    this.#parts.splice(at === -1 ? this.#parts.length : at, 0, ...added)
  }

  /** A reader waits for this object: its parts come before those of others. */
  hurry(id: number): void {
    this.#hurried.add(id)
    this.#parts.sort((a, b) => Number(b.parted.entry.id === id) - Number(a.parted.entry.id === id))
  }

  /** The object is there: no reader waits for it any more. */
  forget(id: number): void {
    this.#hurried.delete(id)
    this.#turns.delete(id)
    this.#opening.delete(id)
  }

  /** The next portion in order; undefined also while an object that comes before it is being opened. */
  next(): QueuedPortion | undefined {
    const [opening] = this.#opening
    const turn = opening === undefined ? Number.POSITIVE_INFINITY : this.#turnOf(opening)
    return this.#nextOf((id) => this.#hurried.has(id) || this.#turnOf(id) < turn)
  }

  /** Like `next`, for objects that a reader waits for. */
  nextHurried(): QueuedPortion | undefined {
    return this.#hurried.size === 0 ? undefined : this.#nextOf((id) => this.#hurried.has(id))
  }

  /** A forgotten object comes before all others: it is there, but parts of it may still be queued. */
  #turnOf(id: number): number {
    return this.#turns.get(id) ?? -1
  }

  #nextOf(isMeant: (id: number) => boolean): QueuedPortion | undefined {
    for (let next = this.#parts[0]; next && isMeant(next.parted.entry.id); next = this.#parts[0]) {
      const portion = next.parted.take(next.part)
      if (portion) return { parted: next.parted, portion }
      this.#parts.shift()
    }
    return undefined
  }
}
