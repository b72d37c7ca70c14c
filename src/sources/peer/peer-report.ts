import { isDscError } from '../../failure/dsc-error.js'
import { redactText } from '../../failure/redact.js'
import { SourceFailure } from '../../failure/source-failure.js'
import type { Origins } from '../source.js'

/** What came from where since the last time, and what peers failed with. Plain data, of a thread. */
export interface PeerNews {
  readonly received: Received
  readonly problems: readonly (readonly [node: string, problem: string])[]
}

interface Received {
  storeBytes: number
  readonly peerBytes: Record<string, number>
}

/** What came from where in one staging, and what peers failed with. */
export class PeerReport {
  #received: Received = { storeBytes: 0, peerBytes: {} }
  readonly #problems = new Map<string, string>()
  #untold: [string, string][] = []

  /** What came from where, and who failed. */
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

  /** Takes what happened since the last call, for the report that `addNews` adds it to; bytes count there from now on. */
  takeNews(): PeerNews | undefined {
    const { storeBytes, peerBytes } = this.#received
    if (storeBytes === 0 && this.#untold.length === 0 && Object.keys(peerBytes).length === 0) return undefined
    const news = { received: this.#received, problems: this.#untold }
    this.#received = { storeBytes: 0, peerBytes: {} }
    this.#untold = []
    return news
  }

  /** Adds what another thread's report took. */
  addNews({ received, problems }: PeerNews): void {
    this.addStoreBytes(received.storeBytes)
    for (const [node, bytes] of Object.entries(received.peerBytes)) this.addBytes(node, bytes)
    for (const [node, problem] of problems) this.addProblem(node, problem)
  }

  /** Adds what peers failed with to the failure of the store, which was the last resort. */
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
