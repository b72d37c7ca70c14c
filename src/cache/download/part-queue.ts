import type { Part } from '../proof/plan-parts.js'
import type { PartedObject, Portion } from './parted-object.js'

/** Bytes of a part that are to be fetched now. */
interface QueuedPortion {
  readonly parted: PartedObject
  readonly portion: Portion
}

/** Parts of large objects that were begun, in the order in which they are fetched: few files are half done at a time. */
export class PartQueue {
  #parts: { readonly parted: PartedObject; readonly part: Part }[] = []
  /** Objects that somebody waits for. */
  readonly #hurried = new Set<number>()

  get isEmpty(): boolean {
    return this.#parts.length === 0
  }

  /** Adds parts of an object: behind all others, or before them where somebody waits for it. */
  add(parted: PartedObject, parts: readonly Part[]): void {
    const added = parts.map((part) => ({ parted, part }))
    this.#parts = this.#hurried.has(parted.entry.id) ? [...added, ...this.#parts] : [...this.#parts, ...added]
  }

  /** Somebody waits for an object: its parts come before those of others. */
  hurry(id: number): void {
    this.#hurried.add(id)
    this.#parts.sort((a, b) => Number(b.parted.entry.id === id) - Number(a.parted.entry.id === id))
  }

  /** An object is there: nobody waits for it any more. */
  forget(id: number): void {
    this.#hurried.delete(id)
  }

  next(): QueuedPortion | undefined {
    return this.#nextOf(() => true)
  }

  /** As `next`, of objects that somebody waits for. */
  nextHurried(): QueuedPortion | undefined {
    return this.#hurried.size === 0 ? undefined : this.#nextOf((id) => this.#hurried.has(id))
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
