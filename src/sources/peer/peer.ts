import { throwIfStopped } from '../../failure/throw-if-stopped.js'
import type { Urgency } from '../../model/urgency.js'
import type { ObjectFacts } from '../../proof/object-facts.js'
import type { WireObject } from '../peer-wire.js'
import type { GivenDigest } from '../source.js'
import type { PeerAnswer } from './peer-answer.js'
import type { PeerConnection } from './peer-connection.js'

/** A part of an object; `range` is what is missing of it: it shrinks as bytes come, and the next one asked goes on there. */
export interface PeerRequest {
  readonly path: string
  /** The object, where it is small and nobody waits for it: it may be asked for together with others. Absent: alone. */
  readonly gathered?: WireObject | undefined
  readonly part: { readonly offset: number; readonly length: number }
  readonly range: { offset: number; length: number }
  readonly onFacts: (facts: ObjectFacts) => void
  /** Called with the digest of the whole range, as it was asked for at first. */
  readonly onDigest: (given: GivenDigest) => void
  /** A peer that gives no digest is of no use. */
  readonly needsDigest?: boolean | undefined
  readonly sink: (chunk: Uint8Array) => number
  readonly signal: AbortSignal | undefined
  /** Whether the node is staging, and to be waited for until it has the part or stages no more. */
  readonly isWaitedFor: boolean
  /**
   * How urgently it should have the part, and holds the question until then; undefined: it does not. Only of one that is
   * waited for.
   */
  readonly held: Urgency | undefined
  /** Whether another node is waited for, so that this one need not send it while it has enough to send. */
  readonly isSpared?: boolean
  /** Whether the node is, as far as is known, still staging. Only asked of one that is waited for. */
  readonly isStaging: () => boolean
  /** When this part was first asked for, ms. */
  readonly beganMs: number
}

/** `later`: it has nothing of the rest yet, and is worth asking again. `elsewhere`: the rest must come from others. */
export type PeerOutcome = 'done' | 'later' | 'elsewhere'

/** A peer that failed is left alone for so long, ms. */
const REST_MS = 10_000
/** A node that stages side by side may begin later than this one by so much, ms. */
const BEGIN_PATIENCE_MS = 15_000
/** A node that owns a part and has sent nothing at all for so long is not waited for any more, ms. */
const SILENT_PATIENCE_MS = 60_000
const MAX_REST_DOUBLINGS = 6
/** A node that was waited for while another had the part is not waited for again for so long, ms. */
const LATE_MS = 30_000
/** A node that had none of so many parts in a row is not asked for more of them, unless it is waited for. */
const MAX_EMPTY_ANSWERS = 100

/** Another node as this one has met it: what it answers, how busy it is, and when it may be asked again. */
export class Peer {
  inFlight = 0
  /** The clock that all of this is measured by, ms. */
  readonly nowMs: () => number
  #restsUntilMs = 0
  #isLateUntilMs = 0
  #lastBytesMs: number
  /** Times that waiting for it brought nothing; after the first it is only asked, with longer rests. */
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

  /** Whether it was waited for in vain lately, while another had the part. */
  get isLate(): boolean {
    return this.#isLateUntilMs > this.nowMs()
  }

  /** It was waited for, and another had the part. */
  noteLate(): void {
    this.#isLateUntilMs = this.nowMs() + LATE_MS
  }

  /** Whether it had nothing of what it was asked for lately. */
  get isLikelyEmpty(): boolean {
    return this.#emptyAnswers >= MAX_EMPTY_ANSWERS
  }

  /** Asks once for the range; a node that is waited for is worth it for as long as it makes progress. */
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

  /** Has it fetch next what it was asked for. */
  hurry(part: { readonly path: string; readonly offset: number; readonly length: number }): void {
    this.#connection.hurry(part)
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
    const { path, gathered, part, range, onFacts, onDigest, needsDigest, sink, signal, held } = request
    const isWhole = range.length === gathered?.sizeBytes
    return this.#connection.get({
      path,
      gathered: isWhole && held === undefined ? gathered : undefined,
      offset: range.offset,
      length: range.length,
      held,
      isSpared: request.isSpared,
      onFacts,
      signal,
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
