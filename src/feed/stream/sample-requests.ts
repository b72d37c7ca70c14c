import { DscError } from '../../failure/dsc-error.js'
import type { SampleOrigin, SampleSource, SampleStatus } from '../../samples/sample-source.js'
import type { SampleArena } from '../arena/sample-arena.js'
import { LostSample } from './lost-sample.js'
import type { SampleRequest, Slot } from './slot.js'
import type { StreamPlan } from './stream-plan.js'

/** Caller that waits for a slot. */
interface Waiter {
  readonly settled: (slot: Slot) => void
  readonly failed: (error: unknown) => void
}

/** Error for a client whose slot will not arrive. */
export function movedAway(): DscError {
  return new DscError('FEED_GONE', 'another client of this rank has moved to another position')
}

/**
 * For whom a sample was waited for: `disk`, `store`, or the name of a storage node. A sample that another node had to
 * send in the place of `node` waited for `node`.
 */
export function nameCulprit(source: SampleSource, node: number, origin: SampleOrigin): string {
  if (origin === 'peer') return source.nodeName(node)
  return origin === 'local' ? 'disk' : 'store'
}

/** The requests of a stream in flight: hands them to the source, and their samples to waiting callers. */
export class SampleRequests {
  readonly #plan: StreamPlan
  readonly #arena: SampleArena
  readonly #source: SampleSource
  readonly #waiters = new Map<Slot, Waiter>()
  /** Where the newest sample that somebody waited for was asked for. */
  #lastAwaited: string
  /** Unfinished requests, and the controller to abort each. */
  readonly #running = new Map<SampleRequest, AbortController>()

  constructor(parts: {
    readonly plan: StreamPlan
    readonly arena: SampleArena
    readonly source: SampleSource
  }) {
    this.#plan = parts.plan
    this.#arena = parts.arena
    this.#source = parts.source
    this.#lastAwaited = nameCulprit(parts.source, 0, parts.source.origin)
  }

  /** Whom the newest wait was for: `disk`, `store`, or the name of a storage node. */
  get lastAwaited(): string {
    return this.#lastAwaited
  }

  /** Sends the request to the source. Resolves when it is over, even if it failed. */
  async issue(request: SampleRequest): Promise<void> {
    const { node, isMiss, slots } = request
    const isSettled = new Uint8Array(slots.length)
    const samples = Uint32Array.from(slots, (slot) => slot.sample)
    const offsets = Float64Array.from(slots, (slot) => this.#arena.offsetOf(slot.extent!))
    const giveUp = new AbortController()
    this.#running.set(request, giveUp)
    let failure: unknown
    try {
      await this.#source.read(
        { node, samples, offsets, isMiss, signal: giveUp.signal },
        (i, status, origin) => {
          if (isSettled[i] === 1) return
          isSettled[i] = 1
          if (this.#waiters.has(slots[i]!))
            this.#lastAwaited = nameCulprit(this.#source, node, origin ?? this.#source.origin)
          this.#settle(slots[i]!, status)
        },
      )
    } catch (error) {
      failure = error
    }
    this.#running.delete(request)
    for (const [i, slot] of slots.entries())
      if (isSettled[i] === 0) this.#settle(slot, 'unreachable', failure)
    this.#plan.finishRequest(request)
  }

  /** Resolves to the slot once its bytes are here. */
  arrival(slot: Slot): Promise<Slot> {
    return new Promise((settled, failed) => this.#waiters.set(slot, { settled, failed }))
  }

  /** Aborts requests with no wanted samples left. */
  cancelUnwanted(): void {
    for (const [request, giveUp] of this.#running)
      if (!request.slots.some(({ state }) => state === 'inflight')) giveUp.abort()
  }

  /** Settles a slot; rejects with `failure` if the request as a whole failed. */
  #settle(slot: Slot, status: SampleStatus, failure?: unknown): void {
    if (status === 'ok') this.#plan.settle(slot)
    else this.#plan.fail(slot)
    const waiter = this.#waiters.get(slot)
    if (!waiter) return
    this.#waiters.delete(slot)
    if (failure !== undefined) waiter.failed(failure)
    else if (slot.state === 'dropped') waiter.failed(movedAway())
    else if (status === 'ok') waiter.settled(slot)
    else waiter.failed(new LostSample(this.#source, slot, status))
  }
}
