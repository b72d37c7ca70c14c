import { BroadcastChannel } from 'node:worker_threads'
import type { Copy } from '../../model/copy.js'

/** How long the record's answer stays fresh, in ms: far below the life of any hold. */
const BELIEVED_MS = 500
/** The channel on which the threads of one gateway share what they know. */
const CHANNEL = 'dsc gateway: copies'

/** Asks the other threads what they know. */
const ASK = 'ask'

/** A thread's message to the others about a dataset. */
interface Told {
  readonly dataset: string
  readonly copies: readonly Copy[]
}

/** Copies of a dataset, newest first. */
interface Believed {
  readonly untilMs: number
  readonly copies: readonly Copy[]
}

/**
 * The record's answers about copies of datasets: fresh for a moment, and kept for when the record is away. Threads of
 * the gateway tell each other about ready copies, so that each knows what any of them learned.
 */
export class BelievedCopies {
  readonly #believed = new Map<string, Believed>()
  readonly #channel = new BroadcastChannel(CHANNEL)
  /** Ids of the ready copies of each dataset that the other threads were told about. */
  readonly #told = new Map<string, string>()

  constructor() {
    this.#channel.onmessage = (event) => this.#hear((event as { data: Told | typeof ASK }).data)
    this.#channel.unref()
    this.#channel.postMessage(ASK) // ask for what was shared before this thread began
  }

  /** The fresh answer; undefined: ask the record. */
  find(dataset: string): readonly Copy[] | undefined {
    const known = this.#believed.get(dataset)
    return known && known.untilMs > performance.now() ? known.copies : undefined
  }

  /** Ready copies that the record once reported. They stay while it is away: eviction needs the record. */
  readyOf(dataset: string): readonly Copy[] {
    return this.#believed.get(dataset)?.copies.filter(({ state }) => state === 'ready') ?? []
  }

  /** Notes the record's answer, unless the dataset has no ready copy: that answer changes all the time. */
  learn(dataset: string, copies: readonly Copy[]): void {
    const ready = copies.filter(({ state }) => state === 'ready')
    if (ready.length === 0) return
    this.#believed.set(dataset, { untilMs: performance.now() + BELIEVED_MS, copies })
    const ids = ready.map(({ copyId }) => copyId).join()
    if (this.#told.get(dataset) === ids) return
    this.#told.set(dataset, ids)
    this.#tell(dataset)
  }

  /** Makes the next `find` ask the record. */
  doubt(dataset: string): void {
    const known = this.#believed.get(dataset)
    if (known) this.#believed.set(dataset, { ...known, untilMs: 0 })
  }

  close(): void {
    this.#channel.close()
  }

  #tell(dataset: string): void {
    const copies = this.readyOf(dataset)
    if (copies.length > 0) this.#channel.postMessage({ dataset, copies } satisfies Told)
  }

  #hear(said: Told | typeof ASK): void {
    if (said === ASK) for (const dataset of this.#believed.keys()) this.#tell(dataset)
    else if (!this.#believed.has(said.dataset))
      this.#believed.set(said.dataset, { untilMs: 0, copies: said.copies })
  }
}
