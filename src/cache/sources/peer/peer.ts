import { setTimeout as sleep } from 'node:timers/promises'
import { throwIfStopped } from '../../../failure/throw-if-stopped.js'
import type { ObjectFacts } from '../../proof/object-facts.js'
import type { PeerAnswer, PeerConnection } from './peer-connection.js'

/** A node that may supply parts. `take` leases what it has; false: it no longer has it. */
export interface Provider {
  readonly node: string
  readonly url: string
  readonly take: () => Promise<boolean>
}

/** A part of an object; `range` is what is missing of it: it shrinks as bytes come, and the next one asked goes on there. */
export interface PeerRequest {
  readonly path: string
  readonly part: { readonly offset: number; readonly length: number }
  readonly range: { offset: number; length: number }
  readonly onFacts: (facts: ObjectFacts) => void
  /** Called with the digest of the whole range, as it was asked for at first. */
  readonly onDigest: (digest: string) => void
  /** A peer that gives no digest is of no use. */
  readonly needsDigest?: boolean | undefined
  readonly sink: (chunk: Uint8Array) => number
  readonly signal: AbortSignal | undefined
}

/** A peer that failed is left alone for so long, ms. */
const REST_MS = 10_000
/** A node that stages side by side may begin later than this one by so much, ms. */
const BEGIN_PATIENCE_MS = 15_000
/** A node that owns a part and has sent nothing at all for so long is not waited for any more, ms. */
const SILENT_PATIENCE_MS = 60_000
const ASK_AGAIN_MS = 300
const MAX_REST_DOUBLINGS = 6

/** Another node as this one has met it: what it answers, how busy it is, and when it may be asked again. */
export class Peer {
  inFlight = 0
  #restsUntilMs = 0
  #lastBytesMs = performance.now()
  /** Times that waiting for it brought nothing; after the first it is only asked, with longer rests. */
  #fruitlessWaits = 0
  readonly #provider: Provider
  readonly #connection: PeerConnection
  readonly #isWaitedFor: boolean
  readonly #onBytes: (bytes: number) => void
  readonly #onProblem: (problem: string) => void

  constructor(options: {
    readonly provider: Provider
    readonly connection: PeerConnection
    /** Only those who stage side by side are worth waiting for. */
    readonly isWaitedFor: boolean
    readonly onBytes: (bytes: number) => void
    readonly onProblem: (problem: string) => void
  }) {
    this.#provider = options.provider
    this.#connection = options.connection
    this.#isWaitedFor = options.isWaitedFor
    this.#onBytes = options.onBytes
    this.#onProblem = options.onProblem
  }

  get isResting(): boolean {
    return this.#restsUntilMs > performance.now()
  }

  /** Reads the range, waiting for it where that is worth it. False: the rest of it must come from elsewhere. */
  async read(request: PeerRequest): Promise<boolean> {
    const beganMs = performance.now()
    this.inFlight += 1
    try {
      if (!(await this.#provider.take())) return false
      for (;;) {
        throwIfStopped(request.signal)
        const answer = await this.#get(request)
        if (answer.outcome === 'ok') return true
        throwIfStopped(request.signal)
        if (answer.outcome === 'failed') {
          this.#restsUntilMs = performance.now() + REST_MS
          this.#onProblem(answer.problem)
          return false
        }
        if (!this.#isWaitedFor || !this.#isWorthWaiting(answer, beganMs)) return false
        if (answer.outcome === 'missing') await sleep(ASK_AGAIN_MS)
      }
    } finally {
      this.inFlight -= 1
    }
  }

  /** Is not asked any more. */
  dismiss(problem: string): void {
    this.#restsUntilMs = Number.POSITIVE_INFINITY
    this.#onProblem(problem)
  }

  close(): Promise<void> {
    return this.#connection.close()
  }

  #get(request: PeerRequest): Promise<PeerAnswer> {
    const { path, part, range, onFacts, onDigest, needsDigest, sink, signal } = request
    return this.#connection.get({
      path,
      offset: range.offset,
      length: range.length,
      onFacts,
      signal,
      onDigest: (found) => {
        if (found?.offset === part.offset && found.length === part.length) onDigest(found.digest)
        else if (needsDigest) throw new Error('gives no digest of the part')
      },
      sink: (chunk) => {
        range.offset += chunk.length
        range.length -= chunk.length
        this.#lastBytesMs = performance.now()
        this.#onBytes(chunk.length)
        return sink(chunk)
      },
    })
  }

  #isWorthWaiting(answer: PeerAnswer, beganMs: number): boolean {
    const nowMs = performance.now()
    const silentMs = nowMs - Math.max(beganMs, this.#lastBytesMs)
    const firstPatienceMs = answer.outcome === 'missing' ? BEGIN_PATIENCE_MS : SILENT_PATIENCE_MS
    if (silentMs <= (this.#fruitlessWaits === 0 ? firstPatienceMs : 0)) return true
    if (!this.isResting) {
      this.#restsUntilMs = nowMs + REST_MS * 2 ** Math.min(this.#fruitlessWaits, MAX_REST_DOUBLINGS)
      this.#fruitlessWaits += 1
    }
    this.#onProblem(`had no part for ${Math.round(silentMs / 1000)} s`)
    return false
  }
}
