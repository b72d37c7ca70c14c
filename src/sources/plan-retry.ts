import type { FailureCode } from '../failure/failure-table.js'
import { planPause } from '../platform/plan-pause.js'

/** The facts that decide whether and when to retry a failed attempt. */
export interface FailedAttempt {
  readonly code: FailureCode
  readonly isTransient: boolean
  /** The source does not answer at all: then time counts, not attempts. */
  readonly isAway: boolean
  /** The pause that the source asked for, in ms. */
  readonly retryAfterMs: number | undefined
  /** Attempts since the last bytes arrived, 1 or more. */
  readonly attempts: number
  /** Time since then, in ms, without the pauses that the source asked for. */
  readonly elapsedMs: number
  /** How long to keep trying a source that does not answer, or answers nothing of use, in ms. */
  readonly patienceMs: number
  /** 0 to 1. */
  readonly random: number
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
export function countAttempts({ code, isAway }: Pick<FailedAttempt, 'code' | 'isAway'>): number | undefined {
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
