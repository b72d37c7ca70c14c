import { DscError } from '../failure/dsc-error.js'
import type { ArenaPlan } from './plan/arena-plan.js'

/** Misses for which the arena has no room now. */
export interface WaitingRoom {
  /** How many have come here so far. */
  readonly entered: number
  /** `retry` returns whether there was room at last; `fail` is called after the time limit. */
  enter(retry: () => boolean, fail: (error: Error) => void): void
  /** Lets go, in their order, those for which a release or `makeRoom` has made room. */
  retryAll(): void
  /** Fails all with `error`. */
  close(error: Error): void
}

/** `makeRoom` gives something up and returns whether there was anything to give up. */
export function createWaitingRoom(options: {
  readonly arena: ArenaPlan
  readonly makeRoom: () => boolean
  readonly timeoutMs: number
  readonly nowMs: () => number
}): WaitingRoom {
  const { arena, makeRoom, timeoutMs, nowMs } = options
  const waiting: { retry: () => boolean; fail: (error: Error) => void; sinceMs: number }[] = []
  let entered = 0
  const retryAll = () => {
    while (waiting.length > 0) {
      if (waiting[0]!.retry()) waiting.shift()
      else if (!makeRoom()) return
    }
  }
  const timer = setInterval(() => {
    const late = waiting.findIndex(({ sinceMs }) => nowMs() - sinceMs >= timeoutMs)
    if (late < 0) return
    const [first] = waiting.splice(late, 1)
    const message = `a sample has no room: clients hold ${arena.top.liveBytes + arena.bottom.liveBytes} of ${arena.totalBytes} bytes of the feed`
    first!.fail(new DscError('FEED_MEMORY', message, { hint: 'a larger --memory, or smaller batches' }))
  }, timeoutMs / 8)
  timer.unref()
  return {
    get entered() {
      return entered
    },
    enter(retry, fail) {
      entered++
      waiting.push({ retry, fail, sinceMs: nowMs() })
      retryAll()
    },
    retryAll,
    close(error) {
      clearInterval(timer)
      for (const each of waiting.splice(0)) each.fail(error)
    },
  }
}
