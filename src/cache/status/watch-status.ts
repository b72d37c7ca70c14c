import { pause } from '../../platform/poll.js'
import type { StatusReader } from './status-reader.js'

/** How often to read the record. */
export interface WatchIntervals {
  /** Interval while the record cannot announce changes, in ms. */
  readonly pollMs: number
  /** Interval while it can but announces none, in ms: nodes report and leases expire without an announcement. */
  readonly quietMs: number
  /** Minimum pause after a read, in ms, no matter how many changes are announced. */
  readonly pauseMs: number
}

/** A running watch. */
export interface StatusWatch {
  /** Reads now. */
  readonly refresh: () => void
  readonly stop: () => void
}

/** Fraction of the time that reading may take, so that keys still respond if the record is large or slow. */
const READ_SHARE = 0.2

/**
 * Reads the record whenever it announces a change, and otherwise at intervals; one read at a time. Passes failures to
 * `fail` and retries after `pollMs`.
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
      // Wait before reading, so that a change during the read causes another.
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
      if (leftMs > 0 && !signal.aborted) await pause(leftMs, signal)
      round.abort()
    }
  }
  void run()
  return { refresh: () => round.abort(), stop: () => stopping.abort() }
}
