import { setTimeout as sleep } from 'node:timers/promises'
import type { StatusReader } from './status-reader.js'

/** How often the record is read. */
export interface WatchIntervals {
  /** Between two reads while the record cannot tell of changes, ms. */
  readonly pollMs: number
  /** Between two reads while it can and nothing is told, ms: nodes report and leases expire without a word. */
  readonly quietMs: number
  /** At least so long after a read, ms, however many changes are told. */
  readonly pauseMs: number
}

/** Reading that goes on. */
export interface StatusWatch {
  /** Reads now. */
  readonly refresh: () => void
  readonly stop: () => void
}

/** Share of the time that reading may take, so that keys are answered while the record is large or slow. */
const READ_SHARE = 0.2

/**
 * Reads the record again whenever it tells of a change, else at intervals; one read at a time. What fails is handed
 * to `fail`, and tried again after `pollMs`.
 */
export function watchStatus<Status>(
  reader: StatusReader<Status>,
  intervals: WatchIntervals,
  on: { readonly show: (status: Status) => void; readonly fail: (error: unknown) => void },
): StatusWatch {
  const { pollMs, quietMs, pauseMs } = intervals
  const stopping = new AbortController()
  let round = new AbortController()

  const readOnce = async (): Promise<boolean> => {
    try {
      const snapshot = await reader.read()
      if (!stopping.signal.aborted) on.show(snapshot)
      return true
    } catch (error) {
      if (!stopping.signal.aborted) on.fail(error)
      return false
    }
  }
  const run = async () => {
    while (!stopping.signal.aborted) {
      round = new AbortController()
      const signal = AbortSignal.any([round.signal, stopping.signal])
      const completion = new AbortController()
      const waitSignal = AbortSignal.any([signal, completion.signal])
      // Waiting begins before reading, so that what changes meanwhile is read next.
      const changed = reader.waitForChange({ pollMs, atMostMs: quietMs, signal: waitSignal })
      const beganMs = performance.now()
      const isRead = await readOnce()
      const endedMs = performance.now()
      const completeInMs = isRead ? reader.completeInMs() : undefined
      const completing =
        completeInMs === undefined ? undefined : setTimeout(() => completion.abort(), completeInMs)
      await changed
      clearTimeout(completing)
      const pausedMs = Math.max(isRead ? pauseMs : pollMs, (endedMs - beganMs) / READ_SHARE)
      const leftMs = endedMs + pausedMs - performance.now()
      if (leftMs > 0 && !signal.aborted) await sleep(leftMs, undefined, { signal }).catch(() => {})
      round.abort()
    }
  }
  void run()
  return {
    refresh: () => round.abort(),
    stop: () => stopping.abort(),
  }
}
