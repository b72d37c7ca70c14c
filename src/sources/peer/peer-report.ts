import { isDscError } from '../../failure/dsc-error.js'
import { redactText } from '../../failure/redact.js'
import { SourceFailure } from '../../failure/source-failure.js'
import type { Origins } from '../source.js'

/** Bytes received by origin and failures of peers since the last report. Plain data from a thread. */
export interface PeerNews {
  readonly received: Received
  readonly problems: readonly (readonly [node: string, problem: string])[]
}

interface Received {
  storeBytes: number
  readonly peerBytes: Record<string, number>
}

/** Collects the bytes received by origin and the failures of peers in one staging. */
export class PeerReport {
  #received: Received = { storeBytes: 0, peerBytes: {} }
  readonly #problems = new Map<string, string>()
  #untold: [string, string][] = []

  /** Bytes by origin, and the nodes that failed. */
  describe(): Origins {
    if (this.#problems.size === 0) return this.#received
    const failed = [...this.#problems].map(([node, problem]) => [node, redactText(problem)])
    return { ...this.#received, failed: Object.fromEntries(failed) }
  }

  addBytes(node: string, bytes: number): void {
    const { peerBytes } = this.#received
    peerBytes[node] = (peerBytes[node] ?? 0) + bytes
  }

  addStoreBytes(bytes: number): void {
    this.#received.storeBytes += bytes
  }

  addProblem(node: string, problem: string): void {
    if (this.#problems.get(node) === problem) return
    this.#problems.set(node, problem)
    this.#untold.push([node, problem])
  }

  /**
   * Takes the news since the last call, to be passed to another report's `addNews`; from now on its bytes count there.
   */
  takeNews(): PeerNews | undefined {
    const { storeBytes, peerBytes } = this.#received
    if (storeBytes === 0 && this.#untold.length === 0 && Object.keys(peerBytes).length === 0) return undefined
    const news = { received: this.#received, problems: this.#untold }
    this.#received = { storeBytes: 0, peerBytes: {} }
    this.#untold = []
    return news
  }

  /** Adds the news from another thread's report. */
  addNews({ received, problems }: PeerNews): void {
    this.addStoreBytes(received.storeBytes)
    for (const [node, bytes] of Object.entries(received.peerBytes)) this.addBytes(node, bytes)
    for (const [node, problem] of problems) this.addProblem(node, problem)
  }

  /** Adds the failures of peers to the failure of the store, which was the last resort. */
  explain(error: unknown): unknown {
    if (this.#problems.size === 0 || !isDscError(error) || error.message.includes('; before that'))
      return error
    const problems = [...this.#problems].map(([node, problem]) => `node ${node} ${problem}`).join('; ')
    return new SourceFailure(error.code, `${error.message}; before that ${problems}`, {
      isTransient: error instanceof SourceFailure && error.isTransient,
      hint: error.hint,
      cause: error,
      retryAfterMs: error instanceof SourceFailure ? error.retryAfterMs : undefined,
    })
  }
}
