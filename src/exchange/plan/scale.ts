import type { WireType } from './wire-type.js'

/**
 * The scales of one bucket, a power of two for each of its parts: values are multiplied by 2^exponent before they
 * become half precision. They follow from results that are the same on all ranks bit by bit, so all ranks agree on them
 * without a message.
 */
export interface ScaleState {
  /** By part, −117 … 117; empty until a first exchange in fp32 has shown how large the values are. */
  readonly exponents: readonly number[]
  /** Whether the next exchange is in fp32: this one was too large for its scale, or a part of it too small. */
  readonly isLooking: boolean
  /** Exchanges since the exponents last grew. */
  readonly sinceGrowth: number
  /** Recent exchanges that were too large for their scale, and exchanges since the last of them. */
  readonly overflows: number
  readonly sinceOverflow: number
}

/**
 * Outcome of an exchange: the largest |mean| of each part, and whether half precision overflowed and fp32 repeated it.
 */
export type ExchangeOutcome =
  | { readonly kind: 'clean'; readonly wireType: WireType; readonly amaxes: readonly number[] }
  | { readonly kind: 'redone'; readonly amaxes: readonly number[] }
  /** Not finite in fp32 either: the model's own inf or NaN, passed through. */
  | { readonly kind: 'not finite' }

/** A bucket's scales before its first exchange, which is in fp32 and gives the exponents. */
export const FIRST_SCALE: ScaleState = {
  exponents: [],
  isLooking: true,
  sinceGrowth: 0,
  overflows: 0,
  sinceOverflow: 0,
}

/** A part's largest value lands below 2¹¹: 2⁵ is left for growth and for ranks above the mean. */
const TARGET_EXPONENT = 11
/**
 * While the largest value is at least 1, values down to 2⁻¹⁴ of it keep all bits of a half: an old scale is good
 * enough.
 */
const LEAST_SCALED = 1
/** Approximate limit of halves: a mean above it does not fit. */
const MOST_SCALED = 2 ** 16
/** The largest float is just below 2¹²⁸: it, too, lands at the target. */
const EXPONENT_LIMIT = 117
const GROWTH_INTERVAL = 16
const RESTLESS_OVERFLOWS = 2
const OVERFLOW_MEMORY = 32
/** A lone tensor below this many fp32 bytes gains nothing from being narrowed. */
const SMALL_BYTES = 4096

/** Largest e with amax·2^e ≤ 2¹¹, within ±117. `amax` > 0, finite. */
export function targetExponent(amax: number): number {
  let exponent = TARGET_EXPONENT - Math.ceil(Math.log2(amax))
  // log2 rounds: correct the result at an edge.
  while (amax * 2 ** exponent > 2 ** TARGET_EXPONENT) exponent--
  while (amax * 2 ** (exponent + 1) <= 2 ** TARGET_EXPONENT) exponent++
  return Math.max(-EXPONENT_LIMIT, Math.min(EXPONENT_LIMIT, exponent))
}

/** Chooses a bucket's type on the wire in this step; `exponents` by part are for fp16. */
export function planWire(
  state: ScaleState,
  bucket: { readonly elements: number; readonly tensors: number },
): { readonly wireType: WireType; readonly exponents: readonly number[] } {
  const isSmall = bucket.tensors === 1 && bucket.elements * 4 < SMALL_BYTES
  if (state.isLooking || isRestless(state) || isSmall) return { wireType: 'fp32', exponents: [] }
  return { wireType: 'fp16', exponents: state.exponents }
}

/** Twice too large within 32 exchanges: repeating halves would cost more than they save, until it calms down. */
function isRestless({ overflows, sinceOverflow }: ScaleState): boolean {
  return overflows >= RESTLESS_OVERFLOWS && sinceOverflow < OVERFLOW_MEMORY
}

/**
 * The state after an exchange. It cannot get stuck: values too large for their exponent overflow and are repeated in
 * fp32, values too small show as such, and after either the next exchange is in fp32 and shows the right exponent.
 */
export function advanceScale(state: ScaleState, outcome: ExchangeOutcome): ScaleState {
  if (outcome.kind === 'not finite') return state
  const { amaxes } = outcome
  const isRedone = outcome.kind === 'redone'
  const isExact = !isRedone && outcome.wireType === 'fp32'
  const isGrowing = !isRedone && state.sinceGrowth + 1 >= GROWTH_INTERVAL
  const exponents = amaxes.map((amax, part) => {
    const exponent = state.exponents[part]
    if (exponent === undefined) return findExponent(amax)
    return isRedone ? exponent : nextExponent(exponent, amax, { isExact, isGrowing })
  })
  const isTooLarge = amaxes.some((amax, part) => amax * 2 ** (state.exponents[part] ?? 0) > MOST_SCALED)
  // An exchange that looks is the second one of a rise already counted.
  const hasOverflowed = isRedone || (isExact && isTooLarge && !state.isLooking)
  const remembered = state.sinceOverflow < OVERFLOW_MEMORY ? state.overflows : 0
  return {
    exponents,
    isLooking: isRedone || amaxes.some((amax, part) => isUnseen(amax, exponents[part]!, isExact)),
    sinceGrowth: isGrowing ? 0 : state.sinceGrowth + 1,
    overflows: remembered + (hasOverflowed ? 1 : 0),
    sinceOverflow: hasOverflowed ? 0 : state.sinceOverflow + 1,
  }
}

/**
 * | largest value, scaled | next exponent |
 * |---|---|
 * | above 2¹¹ | lands it there again |
 * | 1 … 2¹¹ | the same; one more every 16 exchanges, up to 2¹⁰ |
 * | below 1, as fp32 shows it | lands it at 2¹¹ |
 * | below 1, as fp16 shows it | the same: the next exchange shows it in fp32 |
 */
function nextExponent(
  exponent: number,
  amax: number,
  { isExact, isGrowing }: { readonly isExact: boolean; readonly isGrowing: boolean },
): number {
  const scaled = amax * 2 ** exponent
  if (scaled > 2 ** TARGET_EXPONENT || (scaled < LEAST_SCALED && isExact)) return findExponent(amax)
  const hasRoom = scaled >= LEAST_SCALED && scaled <= 2 ** (TARGET_EXPONENT - 1)
  return isGrowing && hasRoom ? Math.min(EXPONENT_LIMIT, exponent + 1) : exponent
}

/** The largest exponent if all values are zero: later values then either show or overflow and are repeated. */
function findExponent(amax: number): number {
  return amax > 0 ? targetExponent(amax) : EXPONENT_LIMIT
}

/** Whether a part is too small for its exponent: permanently, if even the largest exponent does not suffice. */
function isUnseen(amax: number, exponent: number, isExact: boolean): boolean {
  if (amax === 0) return !isExact && exponent < EXPONENT_LIMIT
  return amax * 2 ** exponent < LEAST_SCALED
}

/**
 * How to take the mean over `ranks`: values are multiplied by 2^shift before they are summed (no overflow, and a power
 * of two loses nothing) and by `factor` afterwards in fp32. `factor` is 1 for a power-of-two count.
 */
export function planAveraging(ranks: number): { readonly shift: number; readonly factor: number } {
  const bits = Math.ceil(Math.log2(ranks))
  return { shift: -bits, factor: 2 ** bits / ranks }
}
