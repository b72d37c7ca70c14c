import type { Part } from '../../proof/plan-parts.js'
import type { PartedObject, Portion } from './parted-object.js'

/** Bytes of a part that are to be fetched now. */
interface QueuedPortion {
  readonly parted: PartedObject
  readonly portion: Portion
}

/**
 * Parts of large objects, in the order in which their objects were taken: few files are half done at a time. Nodes that
 * stage together wait for each other's parts, so that all of them go by this order, whichever object was opened first.
 */
export class PartQueue {
  #parts: { readonly parted: PartedObject; readonly part: Part }[] = []
  /** When each object was taken, counted from 0. */
  readonly #turns = new Map<number, number>()
  #taken = 0
  /** Objects that were taken, and whose parts are not known yet, by their turns. */
  readonly #opening = new Set<number>()
  /** Objects that somebody waits for. */
  readonly #hurried = new Set<number>()

  get isEmpty(): boolean {
    return this.#parts.length === 0
  }

  /** An object was taken: its parts will be added, and come before those of objects that are taken later. */
  expect(id: number): void {
    if (this.#turns.has(id)) return
    this.#turns.set(id, this.#taken++)
    this.#opening.add(id)
  }

  /** Adds parts of an object in its turn, or before all others where somebody waits for it. */
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

  /** Somebody waits for an object: its parts come before those of others. */
  hurry(id: number): void {
    this.#hurried.add(id)
    this.#parts.sort((a, b) => Number(b.parted.entry.id === id) - Number(a.parted.entry.id === id))
  }

  /** An object is there: nobody waits for it any more. */
  forget(id: number): void {
    this.#hurried.delete(id)
    this.#turns.delete(id)
    this.#opening.delete(id)
  }

  /** The next in order; undefined, too, while an object that stands before it is being opened. */
  next(): QueuedPortion | undefined {
    const [opening] = this.#opening
    const turn = opening === undefined ? Number.POSITIVE_INFINITY : this.#turnOf(opening)
    return this.#nextOf((id) => this.#hurried.has(id) || this.#turnOf(id) < turn)
  }

  /** As `next`, of objects that somebody waits for. */
  nextHurried(): QueuedPortion | undefined {
    return this.#hurried.size === 0 ? undefined : this.#nextOf((id) => this.#hurried.has(id))
  }

  /** Before all others: an object that is there, of which parts may stand here. */
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
