/** The number of requests at once, and the measurements behind it. */
export interface ConcurrencyState {
  readonly limit: number
  /** Work per second at the previous limit; 0 = unknown. */
  readonly previousRate: number
  readonly previousLimit: number
  /** Number of intervals for which the limit stays the same. */
  readonly restIntervals: number
}

/** Measurements since the last look, with `limit` requests at once. */
interface ConcurrencySample {
  /** Bytes and objects as one figure, per second. */
  readonly rate: number
  /** Number of answers that asked to slow down. */
  readonly throttled: number
  /** Whether the limit was reached; otherwise the rate says nothing about it. */
  readonly isSaturated: boolean
  /** Maximum allowed, 1 or more. */
  readonly cap: number
}

const FIRST_LIMIT = 32
const GROWTH = 1.5
/** A step up must bring this many times the rate, or the limit is past the knee. */
const WORTHWHILE = 1.07
const REST_AFTER_KNEE_INTERVALS = 25
const REST_AFTER_THROTTLE_INTERVALS = 10

/** Starting point of the search for the best number of requests; `cap` is the maximum. */
export function startConcurrency(cap: number): ConcurrencyState {
  return { limit: Math.min(cap, FIRST_LIMIT), previousRate: 0, previousLimit: 0, restIntervals: 0 }
}

/**
 * Finds the knee: raises the number of requests as long as that brings more, returns to the last number that did, and
 * tries again after a rest.
 *
 * | sample | limit |
 * |---|---|
 * | the source asks to slow down | half, at least 1, then a rest |
 * | above the cap | the cap |
 * | resting, or not saturated | stays |
 * | better than at the previous limit | grows by half |
 * | not better | the previous limit, then a rest |
 */
export function planConcurrency(state: ConcurrencyState, sample: ConcurrencySample): ConcurrencyState {
  const { limit, previousRate, previousLimit, restIntervals } = state
  const { rate, throttled, isSaturated, cap } = sample
  const settle = (settled: number, rest: number): ConcurrencyState => ({
    limit: settled,
    previousRate: 0,
    previousLimit: 0,
    restIntervals: rest,
  })
  if (throttled > 0)
    return settle(Math.max(1, Math.min(cap, Math.floor(limit / 2))), REST_AFTER_THROTTLE_INTERVALS)
  if (limit > cap) return settle(cap, 0)
  if (!isSaturated) return state
  if (restIntervals > 0) return { ...state, restIntervals: restIntervals - 1 }
  if (previousRate > 0 && rate < previousRate * WORTHWHILE)
    return settle(previousLimit, REST_AFTER_KNEE_INTERVALS)
  const grown = Math.min(cap, Math.ceil(limit * GROWTH))
  if (grown === limit) return state
  return { limit: grown, previousRate: rate, previousLimit: limit, restIntervals: 0 }
}
