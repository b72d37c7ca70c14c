import { throwIfStopped } from '../../failure/throw-if-stopped.js'
import type { GivenDigest } from '../source.js'
import type { ObjectQuestion, PeerAnswer } from './peer-answer.js'
import type { PeerConnection } from './peer-connection.js'

/**
 * A part of an object. `range` is the rest still missing: it shrinks as bytes arrive, and the next peer resumes there.
 */
export interface PeerRequest extends Omit<ObjectQuestion, 'offset' | 'length' | 'onDigest'> {
  readonly part: { readonly offset: number; readonly length: number }
  readonly range: { offset: number; length: number }
  /** Called with the digest of the whole range, as first requested. */
  readonly onDigest: (given: GivenDigest) => void
  /** Whether a peer without a digest is of no use. */
  readonly needsDigest?: boolean | undefined
  /** Whether the node is staging and worth waiting for, until it has the part or stops staging; only then `held`. */
  readonly isWaitedFor: boolean
  /** Whether the node is still staging, as far as is known. Called only for a node that is waited for. */
  readonly isStaging: () => boolean
  /** When this part was first requested, in ms. */
  readonly beganMs: number
}

/**
 * `later`: it has nothing of the rest yet, but is worth asking again. `elsewhere`: the rest must come from other nodes.
 */
export type PeerOutcome = 'done' | 'later' | 'elsewhere'

/** How long to leave a peer alone after it failed, in ms. */
const REST_MS = 10_000
/** How much later than this node another may begin when they stage side by side, in ms. */
const BEGIN_PATIENCE_MS = 15_000
/** How long to wait for a node that owns a part and has sent nothing at all, in ms. */
const SILENT_PATIENCE_MS = 60_000
const MAX_REST_DOUBLINGS = 6
/** How long not to wait again for a node after another node had the part first, in ms. */
const LATE_MS = 30_000
/** Number of parts in a row that a node did not have, after which it is asked only if it is waited for. */
const MAX_EMPTY_ANSWERS = 100

/** Another node as seen from this one: what it answers, how busy it is, and when it may be asked again. */
export class Peer {
  inFlight = 0
  /** The clock for all times here, in ms. */
  readonly nowMs: () => number
  #restsUntilMs = 0
  #isLateUntilMs = 0
  #lastBytesMs: number
  /** Number of waits that brought nothing; after the first the node is only asked, with longer rests. */
  #fruitlessWaits = 0
  #emptyAnswers = 0
  readonly #connection: PeerConnection
  readonly #onBytes: (bytes: number) => void
  readonly #onProblem: (problem: string) => void

  constructor(options: {
    readonly connection: PeerConnection
    readonly onBytes: (bytes: number) => void
    readonly onProblem: (problem: string) => void
    readonly nowMs: () => number
  }) {
    this.nowMs = options.nowMs
    this.#lastBytesMs = options.nowMs()
    this.#connection = options.connection
    this.#onBytes = options.onBytes
    this.#onProblem = options.onProblem
  }

  get isResting(): boolean {
    return this.#restsUntilMs > this.nowMs()
  }

  /** Whether waiting for it was useless lately, because another node had the part first. */
  get isLate(): boolean {
    return this.#isLateUntilMs > this.nowMs()
  }

  /** Call it when the node was waited for and another had the part. */
  noteLate(): void {
    this.#isLateUntilMs = this.nowMs() + LATE_MS
  }

  /** Whether it lately had none of the requested parts. */
  get isLikelyEmpty(): boolean {
    return this.#emptyAnswers >= MAX_EMPTY_ANSWERS
  }

  /** Asks once for the range; waits for a node that is waited for as long as it makes progress. */
  async read(request: PeerRequest): Promise<PeerOutcome> {
    this.inFlight += 1
    try {
      throwIfStopped(request.signal)
      const answer = await this.#get(request)
      if (answer.outcome === 'ok') {
        this.#emptyAnswers = 0
        return 'done'
      }
      throwIfStopped(request.signal)
      if (answer.outcome === 'failed') {
        this.#restsUntilMs = this.nowMs() + REST_MS
        this.#onProblem(answer.problem)
        return 'elsewhere'
      }
      if (!request.isWaitedFor && !request.isSpared) this.#emptyAnswers += 1
      const mayCome = answer.outcome !== 'other' && request.isWaitedFor && request.isStaging()
      return mayCome && this.#isWorthWaiting(answer, request.beganMs) ? 'later' : 'elsewhere'
    } finally {
      this.inFlight -= 1
    }
  }

  /** Asks it to fetch a requested part next. */
  hurry(part: { readonly path: string; readonly offset: number; readonly length: number }): void {
    this.#connection.hurry(part)
  }

  /** Stops asking it. */
  dismiss(problem: string): void {
    this.#restsUntilMs = Number.POSITIVE_INFINITY
    this.#onProblem(problem)
  }

  close(): Promise<void> {
    return this.#connection.close()
  }

  #get(request: PeerRequest): Promise<PeerAnswer> {
    const { gathered, part, range, onDigest, needsDigest, sink, held } = request
    const isWhole = range.length === gathered?.sizeBytes
    return this.#connection.get({
      ...request,
      ...range,
      gathered: isWhole && held === undefined ? gathered : undefined,
      onDigest: (found) => {
        if (found?.offset === part.offset && found.length === part.length) onDigest(found)
        else if (needsDigest) throw new Error('gives no digest of the part')
      },
      sink: (chunk) => {
        range.offset += chunk.length
        range.length -= chunk.length
        this.#lastBytesMs = this.nowMs()
        this.#onBytes(chunk.length)
        return sink(chunk)
      },
    })
  }

  #isWorthWaiting(answer: PeerAnswer, beganMs: number): boolean {
    const nowMs = this.nowMs()
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
