import { setTimeout as sleep } from 'node:timers/promises'
import { SourceFailure } from '../failure/source-failure.js'
import { throwIfStopped } from '../failure/throw-if-stopped.js'
import { log } from '../log/log.js'
import { countAttempts, planRetry } from './plan-retry.js'

/** Hears of each failure before it is tried again, at most `attemptsLeft` times more. */
export type OnRetry = (failure: SourceFailure, attemptsLeft: number) => void

/** Repeats `attempt` while its failure is transient and the retry plan allows; then throws the last failure. */
export async function withRetries<Value>(
  attempt: () => Promise<Value>,
  options: {
    readonly signal?: AbortSignal | undefined
    readonly onRetry?: OnRetry | undefined
  } = {},
): Promise<Value> {
  const beganMs = performance.now()
  for (let attempts = 1; ; attempts += 1) {
    throwIfStopped(options.signal)
    try {
      return await attempt()
    } catch (error) {
      throwIfStopped(options.signal)
      if (!(error instanceof SourceFailure)) throw error
      const delayMs = planRetry({
        code: error.code,
        isTransient: error.isTransient,
        retryAfterMs: error.retryAfterMs,
        attempts,
        elapsedMs: performance.now() - beganMs,
        random: Math.random(),
      })
      if (delayMs === undefined) throw error
      options.onRetry?.(error, countAttempts(error.code) - attempts)
      log('verbose', `${error.message}; attempt ${attempts + 1} in ${delayMs.toFixed(0)} ms`)
      await sleep(delayMs, undefined, options.signal ? { signal: options.signal } : {}).catch(() => {})
    }
  }
}
