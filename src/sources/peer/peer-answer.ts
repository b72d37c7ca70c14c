import type { Urgency } from '../../model/urgency.js'
import type { ObjectFacts } from '../../proof/object-facts.js'
import type { PartDigest, WireObject } from '../peer-wire.js'

/**
 * `missing`: the peer has no such copy. `early`: it will have the bytes, but not yet. `other`: it is staging another
 * version of the object, or a version without it.
 */
export type PeerAnswer =
  | { readonly outcome: 'ok' }
  | { readonly outcome: 'missing' | 'early' | 'other' }
  | { readonly outcome: 'failed'; readonly problem: string }

export const NO_AGENT: PeerAnswer = { outcome: 'failed', problem: 'is no agent of this version of dsc' }

/** A part's digest as a peer gives it. */
export type PeerDigest = PartDigest & { readonly isProven: boolean }

/** A request for bytes of an object, and the callbacks for its answer. */
export interface ObjectQuestion {
  readonly path: string
  readonly offset: number
  readonly length: number
  /** The whole object, if it is small and may be requested together with others; undefined: it goes alone. */
  readonly gathered?: WireObject | undefined
  /**
   * How urgently a staging node, which holds the request, should fetch the bytes; undefined: the node does not hold it.
   */
  readonly held: Urgency | undefined
  /** Whether a busy node may refuse, when the request is not held: another node is waited for. */
  readonly isSpared?: boolean | undefined
  readonly onFacts: (facts: ObjectFacts) => void
  /**
   * Called before the first byte; undefined: the peer gives no digest. If it throws, the request ends as a failure of
   * the peer.
   */
  readonly onDigest: (given: PeerDigest | undefined) => void
  /** Receives the bytes in order and returns how long to pause, in ms. */
  readonly sink: (chunk: Uint8Array) => number
  readonly signal: AbortSignal | undefined
}

/** Control over the connection for the receiver of an answer. */
export interface AnswerControl {
  /** Call it when the rest of the answer is of no use. */
  readonly cancel: () => void
  readonly pause: () => void
  readonly resume: () => void
}

/** An answer to one request, while it arrives. */
export class ComingAnswer {
  /** Rejects only with errors from the sink: a full disk is the caller's own failure, not the peer's. */
  readonly done: Promise<PeerAnswer>
  #isSettled = false
  readonly #question: ObjectQuestion
  readonly #control: AnswerControl
  readonly #ends: {
    readonly resolve: (answer: PeerAnswer) => void
    readonly reject: (error: unknown) => void
  }
  #status = 0
  #receivedBytes = 0

  constructor(question: ObjectQuestion, control: AnswerControl) {
    this.#question = question
    this.#control = control
    const { promise, ...ends } = Promise.withResolvers<PeerAnswer>()
    this.done = promise
    this.#ends = ends
    question.signal?.addEventListener('abort', this.#stop)
  }

  /** Whether the outcome is decided. */
  get isSettled(): boolean {
    return this.#isSettled
  }

  begin(status: number, facts: ObjectFacts | undefined, digest: PeerDigest | undefined): void {
    this.#status = status
    if (!isOk(status) || this.#isSettled) return
    if (facts) this.#question.onFacts(facts)
    try {
      if (this.#question.length > 0) this.#question.onDigest(digest)
    } catch (error) {
      this.#giveUp({ outcome: 'failed', problem: describeProblem(error) })
    }
  }

  take(chunk: Uint8Array): void {
    if (!isOk(this.#status) || this.#isSettled) return
    const { length, sink } = this.#question
    this.#receivedBytes += chunk.length
    if (this.#receivedBytes > length) {
      this.#giveUp({ outcome: 'failed', problem: `sent more than ${length} bytes` })
      return
    }
    try {
      const pauseMs = sink(chunk)
      if (pauseMs <= 0) return
      this.#control.pause()
      setTimeout(this.#control.resume, pauseMs)
    } catch (error) {
      this.reject(error)
      this.#control.cancel()
    }
  }

  end(): void {
    this.settle(judge(this.#status, this.#receivedBytes, this.#question.length))
  }

  settle(answer: PeerAnswer): void {
    this.#settle(() => this.#ends.resolve(answer))
  }

  /** Ends with a failure of the caller's own side. */
  reject(error: unknown): void {
    this.#settle(() => this.#ends.reject(error))
  }

  /** Ends with a failure of the peer or the connection to it. */
  fail(error: unknown): void {
    this.settle({ outcome: 'failed', problem: describeProblem(error) })
  }

  #giveUp(answer: PeerAnswer): void {
    this.settle(answer)
    this.#control.cancel()
  }

  #settle(end: () => void): void {
    if (this.#isSettled) return
    this.#isSettled = true
    this.#question.signal?.removeEventListener('abort', this.#stop)
    end()
  }

  readonly #stop = () => this.#giveUp({ outcome: 'failed', problem: 'stopped' })
}

export function isOk(status: number): boolean {
  return status === 200 || status === 206
}

function judge(status: number, received: number, length: number): PeerAnswer {
  if (status === 404) return { outcome: 'missing' }
  if (status === 425) return { outcome: 'early' }
  if (status === 409) return { outcome: 'other' }
  if (!isOk(status)) return { outcome: 'failed', problem: describeStatus(status) }
  return received === length
    ? { outcome: 'ok' }
    : { outcome: 'failed', problem: `sent ${received} of ${length} bytes` }
}

function describeStatus(status: number): string {
  if (status === 401) return 'does not accept the token (401); agent.tokenFile must be the same on all nodes'
  return `answered ${status}`
}

function describeProblem(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const code = 'code' in error ? ` (${String(error.code)})` : ''
  return `${error.message || error.name}${code}`
}
