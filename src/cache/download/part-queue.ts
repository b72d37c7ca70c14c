import type { Part } from '../../proof/plan-parts.js'
import type { PartedObject, Portion } from './parted-object.js'

/** Bytes of a part to fetch now. */
export interface QueuedPortion {
  readonly parted: PartedObject
  readonly portion: Portion
  /** Its object's place among those that readers wait for, oldest wait first; undefined: no reader waits. */
  readonly turn?: number | undefined
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
  /** Objects that a reader waits for, each with its place among them, counted from 0. */
  readonly #hurried = new Map<number, number>()
  #hurries = 0

  get isEmpty(): boolean {
    return this.#parts.length === 0
  }

  /** Notes that an object was taken: its parts will be added, and come before those of objects taken later. */
  expect(id: number): void {
    if (this.#turns.has(id)) return
    this.#turns.set(id, this.#taken++)
    this.#opening.add(id)
  }

  /** Adds parts of an object in its turn; if a reader waits for it, behind those with a longer wait alone. */
  add(parted: PartedObject, parts: readonly Part[]): void {
    const { id } = parted.entry
    this.expect(id)
    this.#opening.delete(id)
    const at = this.#parts.findIndex(({ parted: { entry } }) => this.#compare(entry.id, id) > 0)
    const added = parts.map((part) => ({ parted, part }))
    this.#parts.splice(at === -1 ? this.#parts.length : at, 0, ...added)
  }

  /** A reader waits for this object: its parts come before those of objects that no reader waits for. */
  hurry(id: number): void {
    if (this.#hurried.has(id)) return
    this.#hurried.set(id, this.#hurries++)
    this.#parts.sort((a, b) => this.#compare(a.parted.entry.id, b.parted.entry.id))
  }

  /** The object is there: no reader waits for it any more, and parts that still stand here need not be fetched. */
  forget(id: number): void {
    this.#hurried.delete(id)
    this.#opening.delete(id)
    if (this.#turns.delete(id)) this.#parts = this.#parts.filter(({ parted }) => parted.entry.id !== id)
  }

  /** The next portion in order; undefined also while an object that comes before it is being opened. */
  next(): QueuedPortion | undefined {
    const [opening] = this.#opening
    const turn = opening === undefined ? Number.POSITIVE_INFINITY : this.#turns.get(opening)!
    return this.#nextOf((id) => this.#hurried.has(id) || this.#turns.get(id)! < turn)
  }

  /** Like `next`, for objects that a reader waits for. */
  nextHurried(): QueuedPortion | undefined {
    return this.#hurried.size === 0 ? undefined : this.#nextOf((id) => this.#hurried.has(id))
  }

  /** Negative if parts of `one` come before those of `other`. */
  #compare(one: number, other: number): number {
    const [first, second] = [this.#hurried.get(one), this.#hurried.get(other)]
    if (first === undefined && second === undefined) return this.#turns.get(one)! - this.#turns.get(other)!
    return (first ?? Number.MAX_VALUE) - (second ?? Number.MAX_VALUE)
  }

  #nextOf(isMeant: (id: number) => boolean): QueuedPortion | undefined {
    for (let next = this.#parts[0]; next && isMeant(next.parted.entry.id); next = this.#parts[0]) {
      const portion = next.parted.take(next.part)
      if (portion) return { parted: next.parted, portion, turn: this.#hurried.get(next.parted.entry.id) }
      this.#parts.shift()
    }
    return undefined
  }
}
