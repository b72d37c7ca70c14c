import type { Urgency } from '../../model/urgency.js'
import type { FetchRequest } from '../source.js'
import type { Peer } from './peer.js'

type Range = Pick<FetchRequest, 'offset' | 'length'>

/** A part requested from other nodes. */
export interface Awaited {
  readonly path: string
  readonly part: Range
  /** Urgency of the next request. */
  urgency: Urgency
  /** The peer that still has to fetch it and holds a request; absent between two requests. */
  heldBy?: Peer | undefined
}

/** The parts requested from other nodes, so that they can be hurried. */
export class AwaitedParts {
  readonly #byKey = new Map<string, Set<Awaited>>()

  /** Registers a part, so that it can be hurried. */
  note(key: string, awaited: Awaited): void {
    const all = this.#byKey.get(key) ?? new Set()
    this.#byKey.set(key, all.add(awaited))
  }

  forget(key: string, awaited: Awaited): void {
    const all = this.#byKey.get(key)
    all?.delete(awaited)
    if (all?.size === 0) this.#byKey.delete(key)
  }

  /** Asks the nodes to fetch next an object, or the parts in a range of it. */
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
