import type { FailureCode } from '../failure/dsc-error.js'

/** What decides whether and when a failed attempt is repeated. */
export interface FailedAttempt {
  readonly code: FailureCode
  readonly isTransient: boolean
  /** Nobody answers: time is what counts, not attempts. */
  readonly isAway: boolean
  /** The source's own wish, ms. */
  readonly retryAfterMs: number | undefined
  /** Attempts made since bytes came last, 1 or more. */
  readonly attempts: number
  /** Since then, ms, without the time that the source asked for. */
  readonly elapsedMs: number
  /** How long a source that does not answer, or answers nothing of use, is tried for, ms. */
  readonly patienceMs: number
  /** 0 to 1. */
  readonly random: number
}

const BASE_DELAY_MS = 100
const MAX_DELAY_MS = 10_000
/** How long a source is tried for unless DSC_RETRY_FOR says otherwise: a store restarts, a name server fails over. */
export const DEFAULT_PATIENCE_MS = 300_000
/** The longest that a source may ask to be left alone: rate limits are of minutes, quotas of an hour. */
export const MAX_RETRY_AFTER_MS = 3_600_000
const DEFAULT_ATTEMPTS = 8
/** A stall costs its whole timeout, and bytes that stay wrong are not cured by asking often. */
const ATTEMPTS: Partial<Record<FailureCode, number>> = {
  SOURCE_STALLED: 12,
  CHECKSUM_MISMATCH: 4,
  SOURCE_TRUNCATED: 5,
  SOURCE_THROTTLED: 12,
}

/** How often a failure is tried before giving up; undefined: as often as `patienceMs` lasts. The first attempt counts. */
export function countAttempts({ code, isAway }: Pick<FailedAttempt, 'code' | 'isAway'>): number | undefined {
  return isAway ? undefined : (ATTEMPTS[code] ?? DEFAULT_ATTEMPTS)
}

/**
 * The pause before the next attempt in ms, or undefined to give up. Full-jitter exponential backoff from 100 ms
 * to 10 s; a Retry-After of the source is waited out in full, plus jitter.
 */
export function planRetry(failed: FailedAttempt): number | undefined {
  const { attempts, retryAfterMs = 0 } = failed
  if (!failed.isTransient || attempts >= (countAttempts(failed) ?? Number.POSITIVE_INFINITY)) return undefined
  const jitterMs = failed.random * Math.min(MAX_DELAY_MS, BASE_DELAY_MS * 2 ** Math.min(attempts - 1, 30))
  const isOver = failed.elapsedMs + jitterMs > failed.patienceMs || retryAfterMs > MAX_RETRY_AFTER_MS
  return isOver ? undefined : retryAfterMs + jitterMs
}
