import { DscError } from '../../failure/dsc-error.js'
import type { SampleSource, SampleStatus } from '../../samples/sample-source.js'
import type { SampleArena } from '../arena/sample-arena.js'
import { LostSample } from './lost-sample.js'
import type { SampleRequest, Slot } from './slot.js'
import type { StreamPlan } from './stream-plan.js'

/** Who waits for a slot. */
interface Waiter {
  readonly settled: (slot: Slot) => void
  readonly failed: (error: unknown) => void
}

/** Why a slot will not come for the client that waits for it. */
export function movedAway(): DscError {
  return new DscError('FEED_GONE', 'another client of this rank has moved to another position')
}

/** The requests of a stream that are on their way: hands them to the source, and what comes to whoever waits for it. */
export class SampleRequests {
  readonly #plan: StreamPlan
  readonly #arena: SampleArena
  readonly #source: SampleSource
  readonly #waiters = new Map<Slot, Waiter>()
  /** Requests that are not over, and how to give each up. */
  readonly #running = new Map<SampleRequest, AbortController>()

  constructor(parts: {
    readonly plan: StreamPlan
    readonly arena: SampleArena
    readonly source: SampleSource
  }) {
    this.#plan = parts.plan
    this.#arena = parts.arena
    this.#source = parts.source
  }

  /** Asks the source. Resolves when the request is over, however it went. */
  async issue(request: SampleRequest): Promise<void> {
    const { node, isMiss, slots } = request
    const isSettled = new Uint8Array(slots.length)
    const samples = Uint32Array.from(slots, (slot) => slot.sample)
    const offsets = Float64Array.from(slots, (slot) => this.#arena.offsetOf(slot.extent!))
    const giveUp = new AbortController()
    this.#running.set(request, giveUp)
    let failure: unknown
    try {
      await this.#source.read({ node, samples, offsets, isMiss, signal: giveUp.signal }, (i, status) => {
        if (isSettled[i] === 1) return
        isSettled[i] = 1
        this.#settle(slots[i]!, status)
      })
    } catch (error) {
      failure = error
    }
    this.#running.delete(request)
    for (const [i, slot] of slots.entries())
      if (isSettled[i] === 0) this.#settle(slot, 'unreachable', failure)
    this.#plan.finishRequest(request)
  }

  /** The slot once its bytes are there. */
  arrival(slot: Slot): Promise<Slot> {
    return new Promise((settled, failed) => this.#waiters.set(slot, { settled, failed }))
  }

  /** Gives up requests of which nothing is wanted any more. */
  cancelUnwanted(): void {
    for (const [request, giveUp] of this.#running)
      if (!request.slots.some(({ state }) => state === 'inflight')) giveUp.abort()
  }

  /** Says what became of a slot; `failure` is told instead where the request as a whole failed. */
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
