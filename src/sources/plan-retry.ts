import type { FailureCode } from '../failure/dsc-error.js'

/** What decides whether and when a failed attempt is repeated. */
export interface FailedAttempt {
  readonly code: FailureCode
  readonly isTransient: boolean
  /** The source's own wish, ms. */
  readonly retryAfterMs: number | undefined
  /** Attempts made so far, 1 or more. */
  readonly attempts: number
  /** Since the first attempt began, ms. */
  readonly elapsedMs: number
  /** 0 to 1. */
  readonly random: number
}

const BASE_DELAY_MS = 100
const MAX_DELAY_MS = 10_000
/** Nobody waits longer than this for one part, whatever the source asks for. */
export const MAX_TOTAL_MS = 300_000
const DEFAULT_ATTEMPTS = 8
/** A stall costs its whole timeout, and bytes that stay wrong are not cured by asking often. */
const ATTEMPTS: Partial<Record<FailureCode, number>> = {
  SOURCE_STALLED: 3,
  CHECKSUM_MISMATCH: 4,
  SOURCE_TRUNCATED: 5,
  SOURCE_THROTTLED: 12,
}

/** How often a failure of this kind is tried before giving up, 2 or more; the first attempt counts. */
export function countAttempts(code: FailureCode): number {
  return ATTEMPTS[code] ?? DEFAULT_ATTEMPTS
}

/**
 * The pause before the next attempt in ms, or undefined to give up. Full-jitter exponential backoff from 100 ms
 * to 10 s; a Retry-After of the source is waited out in full, plus jitter.
 */
export function planRetry(failed: FailedAttempt): number | undefined {
  if (!failed.isTransient || failed.attempts >= countAttempts(failed.code)) return undefined
  const ceilingMs = Math.min(MAX_DELAY_MS, BASE_DELAY_MS * 2 ** (failed.attempts - 1))
  const delayMs = (failed.retryAfterMs ?? 0) + failed.random * ceilingMs
  return failed.elapsedMs + delayMs > MAX_TOTAL_MS ? undefined : delayMs
}
