import { isDscError } from '../../../failure/dsc-error.js'
import { redactText } from '../../../failure/redact.js'
import { SourceFailure } from '../../../failure/source-failure.js'
import type { Origins } from '../source.js'

/** What came from where in one staging, and what peers failed with. */
export class PeerReport {
  readonly received: { store: number; readonly peers: Record<string, number> } = { store: 0, peers: {} }
  readonly #problems = new Map<string, string>()

  /** What came from where, and who failed. */
  describe(): Origins {
    if (this.#problems.size === 0) return this.received
    const failed = [...this.#problems].map(([node, problem]) => [node, redactText(problem)])
    return { ...this.received, failed: Object.fromEntries(failed) }
  }

  addBytes(node: string, bytes: number): void {
    this.received.peers[node] = (this.received.peers[node] ?? 0) + bytes
  }

  addProblem(node: string, problem: string): void {
    this.#problems.set(node, problem)
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
