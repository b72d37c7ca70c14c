import { readRetryPatienceMs } from '../config/retry-patience.js'
import { SourceFailure } from '../failure/source-failure.js'
import { throwIfStopped } from '../failure/throw-if-stopped.js'
import { log } from '../log/log.js'
import { pause } from '../platform/poll.js'
import { countAttempts, planRetry } from './plan-retry.js'

/** Called with each failure before the next attempt; `attemptsLeft` more at most, undefined: for some minutes. */
export type OnRetry = (failure: SourceFailure, attemptsLeft: number | undefined) => void

/**
 * Repeats `attempt` while its failure is transient and the retry plan allows; then throws the last failure. New bytes
 * reset the count of attempts and their time.
 */
export async function withRetries<Value>(
  attempt: () => Promise<Value>,
  options: {
    readonly signal?: AbortSignal | undefined
    readonly onRetry?: OnRetry | undefined
    /** Bytes received and kept so far. Absent: an attempt yields all or nothing. */
    readonly keptBytes?: () => number
  } = {},
): Promise<Value> {
  const { signal } = options
  let [beganMs, attempts, keptBytes] = [performance.now(), 0, options.keptBytes?.() ?? 0]
  const patienceMs = readRetryPatienceMs(process.env)
  for (;;) {
    throwIfStopped(signal)
    attempts += 1
    try {
      return await attempt()
    } catch (error) {
      throwIfStopped(signal)
      if (!(error instanceof SourceFailure)) throw error
      const nowKept = options.keptBytes?.() ?? 0
      if (nowKept > keptBytes) [beganMs, attempts, keptBytes] = [performance.now(), 1, nowKept]
      const { code, isTransient, isAway, retryAfterMs } = error
      const elapsedMs = performance.now() - beganMs
      const random = Math.random()
      const delayMs = planRetry({
        code,
        isTransient,
        isAway,
        retryAfterMs,
        attempts,
        elapsedMs,
        patienceMs,
        random,
      })
      if (delayMs === undefined) throw error
      const allowed = countAttempts(error)
      options.onRetry?.(error, allowed === undefined ? undefined : allowed - attempts)
      log('verbose', `${error.message}; attempt ${attempts + 1} in ${delayMs.toFixed(0)} ms`)
      await pause(delayMs, signal)
      beganMs += retryAfterMs ?? 0
    }
  }
}
