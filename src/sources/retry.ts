import { DscError } from '../failure/dsc-error.js'
import type { FailureCode } from '../failure/failure-table.js'
import { SourceFailure } from '../failure/source-failure.js'
import { throwIfStopped } from '../failure/throw-if-stopped.js'
import { log } from '../log/log.js'
import { parseDuration } from '../model/duration.js'
import { type Failures, planPause } from '../platform/plan-pause.js'
import { pause } from '../platform/poll.js'

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
      const patienceMs = readRetryPatienceMs(process.env)
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

/**
 * The facts that decide whether and when to retry a failed attempt. Attempts and time count from the last bytes that
 * arrived, without the pauses that the source asked for.
 */
export interface FailedAttempt extends Failures {
  readonly code: FailureCode
  readonly isTransient: boolean
  /** The source does not answer at all: then time counts, not attempts. */
  readonly isAway: boolean
  /** The pause that the source asked for, in ms. */
  readonly retryAfterMs: number | undefined
  /** How long to keep trying a source that does not answer, or answers nothing of use, in ms. */
  readonly patienceMs: number
}

/** Pauses without a wish of the source, in ms. */
const PAUSES = { firstMs: 100, longestMs: 10_000 }
/** The longest pause that a source may ask for: rate limits last minutes, quotas an hour. */
export const MAX_RETRY_AFTER_MS = 3_600_000
const DEFAULT_ATTEMPTS = 8
/** A stall costs its whole timeout, and asking often does not cure bytes that stay wrong. */
const ATTEMPTS: Partial<Record<FailureCode, number>> = {
  SOURCE_STALLED: 12,
  CHECKSUM_MISMATCH: 4,
  SOURCE_TRUNCATED: 5,
  SOURCE_THROTTLED: 12,
  SOURCE_CHANGED: 3, // a refused range: it really is shorter, or another node of a CDN has it
}

/** Number of attempts before giving up, including the first; undefined: as many as fit into `patienceMs`. */
function countAttempts({ code, isAway }: Pick<FailedAttempt, 'code' | 'isAway'>): number | undefined {
  return isAway ? undefined : (ATTEMPTS[code] ?? DEFAULT_ATTEMPTS)
}

/**
 * The pause before the next attempt in ms, or undefined to give up. Waits out a Retry-After of the source in full, plus
 * jitter.
 */
export function planRetry(failed: FailedAttempt): number | undefined {
  const { patienceMs, retryAfterMs = 0 } = failed
  if (!failed.isTransient || retryAfterMs > MAX_RETRY_AFTER_MS) return undefined
  const pauseMs = planPause(failed, { ...PAUSES, patienceMs, attempts: countAttempts(failed) })
  return pauseMs === undefined ? undefined : retryAfterMs + pauseMs
}

/** How long to keep trying a source unless DSC_RETRY_FOR says otherwise: a store restarts, a name server fails over. */
const DEFAULT_PATIENCE_MS = 300_000

/** Returns how long to keep trying a source that does not answer, in ms. Throws CONFIG_INVALID. */
function readRetryPatienceMs(environment: Readonly<Record<string, string | undefined>>): number {
  const raw = environment.DSC_RETRY_FOR
  if (!raw) return DEFAULT_PATIENCE_MS
  try {
    return parseDuration(raw)
  } catch (error) {
    if (!(error instanceof RangeError)) throw error
    throw new DscError('CONFIG_INVALID', `DSC_RETRY_FOR: ${error.message}`, {
      hint: 'set it to a time such as 5m',
    })
  }
}
