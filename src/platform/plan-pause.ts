/** How long and how often to retry. */
export interface RetryPace {
  /** The longest pause after the first failure, in ms; it doubles with each. */
  readonly firstMs: number
  /** The longest pause at all, in ms. */
  readonly longestMs: number
  /** How long to keep trying, in ms. */
  readonly patienceMs: number
  /** Number of attempts, including the first. Default: as many as fit into `patienceMs`. */
  readonly attempts?: number | undefined
}

/** The failures so far. */
export interface Failures {
  /** Attempts that failed, 1 or more. */
  readonly attempts: number
  /** Time since the first began, in ms. */
  readonly elapsedMs: number
  /** 0 to 1. */
  readonly random: number
}

/** The pause before the next attempt in ms, or undefined to give up: full-jitter exponential backoff. */
export function planPause(failures: Failures, pace: RetryPace): number | undefined {
  const { attempts, elapsedMs, random } = failures
  if (attempts >= (pace.attempts ?? Number.POSITIVE_INFINITY)) return undefined
  const pauseMs = random * Math.min(pace.longestMs, pace.firstMs * 2 ** Math.min(attempts - 1, 30))
  return elapsedMs + pauseMs > pace.patienceMs ? undefined : pauseMs
}
