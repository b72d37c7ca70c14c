import { DscError } from '../../failure/dsc-error.js'
import type { ArenaSpace } from '../arena/arena-space.js'

/** A miss for which the arena has no room. */
interface RoomSeeker {
  /** Retries; returns whether there was room this time. */
  retry(): boolean
  fail(error: Error): void
}

interface WaitingRoomOptions {
  readonly space: ArenaSpace
  /** Gives up samples that it can do without. */
  readonly plan: { dropFarthest(): boolean }
  readonly timeoutMs: number
  readonly nowMs: () => number
}

/** Misses that wait for room in the arena. */
export class WaitingRoom {
  readonly #options: WaitingRoomOptions
  readonly #waiting: { readonly seeker: RoomSeeker; readonly sinceMs: number }[] = []
  readonly #timer: NodeJS.Timeout
  #entered = 0

  constructor(options: WaitingRoomOptions) {
    this.#options = options
    this.#timer = setInterval(() => this.#failLate(), options.timeoutMs / 8)
    this.#timer.unref()
  }

  /** Number of misses that have waited so far. */
  get entered(): number {
    return this.#entered
  }

  /** Waits for room; `seeker` fails after the time limit. */
  enter(seeker: RoomSeeker): void {
    this.#entered++
    this.#waiting.push({ seeker, sinceMs: this.#options.nowMs() })
    this.retryAll()
  }

  /** Lets misses leave in order while there is room, or while the plan gives up a sample for them. */
  retryAll(): void {
    while (this.#waiting.length > 0) {
      if (this.#waiting[0]!.seeker.retry()) this.#waiting.shift()
      else if (!this.#options.plan.dropFarthest()) return
    }
  }

  /** Fails all misses with `error`. */
  close(error: Error): void {
    clearInterval(this.#timer)
    for (const { seeker } of this.#waiting.splice(0)) seeker.fail(error)
  }

  #failLate(): void {
    const { space, timeoutMs, nowMs } = this.#options
    const late = this.#waiting.findIndex(({ sinceMs }) => nowMs() - sinceMs >= timeoutMs)
    if (late < 0) return
    const [first] = this.#waiting.splice(late, 1)
    const heldBytes = space.top.liveBytes + space.bottom.liveBytes
    const message = `a sample has no room: clients hold ${heldBytes} of ${space.totalBytes} bytes of the feed`
    first!.seeker.fail(
      new DscError('FEED_MEMORY', message, { hint: 'a larger --memory, or smaller batches' }),
    )
  }
}
