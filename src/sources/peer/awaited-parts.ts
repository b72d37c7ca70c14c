import type { Urgency } from '../../model/urgency.js'
import type { FetchRequest } from '../source.js'
import type { Peer } from './peer.js'

type Range = Pick<FetchRequest, 'offset' | 'length'>

/** A part that is asked for at other nodes. */
export interface Awaited {
  readonly path: string
  readonly part: Range
  /** Of the next question. */
  urgency: Urgency
  /** Who has yet to fetch it, and holds a question; absent between two questions. */
  heldBy?: Peer | undefined
}

/** What is asked for at other nodes, so that it can be hurried. */
export class AwaitedParts {
  readonly #byKey = new Map<string, Set<Awaited>>()

  /** From now on it can be hurried. */
  note(key: string, awaited: Awaited): void {
    const all = this.#byKey.get(key) ?? new Set()
    this.#byKey.set(key, all.add(awaited))
  }

  forget(key: string, awaited: Awaited): void {
    const all = this.#byKey.get(key)
    all?.delete(awaited)
    if (all?.size === 0) this.#byKey.delete(key)
  }

  /** Has the nodes that are asked for an object, or for what is in a range of it, fetch it next. */
  hurry(key: string, range?: Range): void {
    for (const awaited of this.#byKey.get(key) ?? []) {
      const { part, path, heldBy, urgency } = awaited
      if (urgency === 'wanted' || (range && !overlap(part, range))) continue
      awaited.urgency = 'wanted'
      heldBy?.hurry({ path, ...part })
    }
  }
}

function overlap(one: Range, other: Range): boolean {
  return one.offset < other.offset + other.length && other.offset < one.offset + one.length
}
