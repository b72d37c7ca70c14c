import { BroadcastChannel } from 'node:worker_threads'
import type { Copy } from '../../model/copy.js'

/** How long what the record said is believed, ms: far below the life of any hold. */
const BELIEVED_MS = 500
/** On which the threads of one gateway tell each other. */
const CHANNEL = 'dsc gateway: copies'

/** Asks the other threads what they know. */
const ASK = 'ask'

/** What a thread tells the others of a dataset. */
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
 * What the record said of the copies of datasets: believed for a moment, and kept for when the record is away. Of ready
 * copies the other threads of the gateway are told, so that each knows what any of them knew.
 */
export class BelievedCopies {
  readonly #believed = new Map<string, Believed>()
  readonly #channel = new BroadcastChannel(CHANNEL)
  /** Ids of the ready copies of each dataset that the others were told of. */
  readonly #told = new Map<string, string>()

  constructor() {
    this.#channel.onmessage = (event) => this.#hear((event as { data: Told | typeof ASK }).data)
    this.#channel.unref()
    this.#channel.postMessage(ASK) // what was told before this thread began
  }

  /** What is believed this moment; undefined: the record is to be asked. */
  find(dataset: string): readonly Copy[] | undefined {
    const known = this.#believed.get(dataset)
    return known && known.untilMs > performance.now() ? known.copies : undefined
  }

  /** Ready copies of which the record once said: nothing is evicted without it, so they hold while it is away. */
  readyOf(dataset: string): readonly Copy[] {
    return this.#believed.get(dataset)?.copies.filter(({ state }) => state === 'ready') ?? []
  }

  /** Notes what the record said. Of a dataset that has no ready copy nothing is believed: it changes all the time. */
  learn(dataset: string, copies: readonly Copy[]): void {
    const ready = copies.filter(({ state }) => state === 'ready')
    if (ready.length === 0) return
    this.#believed.set(dataset, { untilMs: performance.now() + BELIEVED_MS, copies })
    const ids = ready.map(({ copyId }) => copyId).join()
    if (this.#told.get(dataset) === ids) return
    this.#told.set(dataset, ids)
    this.#tell(dataset)
  }

  /** Has the record asked at once. */
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
