/** How values travel. */
export type WireType = 'fp32' | 'fp16' | 'bf16'

/**
 * The scale of one bucket: values are multiplied by 2^exponent before they become half precision.
 * It advances from results that all ranks hold bit by bit, so all ranks agree on it without a message.
 */
export interface ScaleState {
  /** Undefined until a first exchange in fp32 has shown the size of the values. −117 … 117. */
  readonly exponent: number | undefined
  /** Largest |mean| of the last exchange that had one; 0 if none yet. */
  readonly lastAmax: number
  /** Exchanges since the exponent last grew. */
  readonly sinceGrowth: number
  /** Jumps of more than 2⁵ between neighbouring exchanges that were seen lately, and exchanges since the last. */
  readonly jumps: number
  readonly sinceJump: number
  /** fp16 until the values have jumped twice; then bf16, whose range needs no scale. */
  readonly halfType: 'fp16' | 'bf16'
}

/** How an exchange ended: the largest |mean| it gave, and whether half precision overflowed and fp32 had to repeat it. */
export type ExchangeOutcome =
  | { readonly kind: 'clean'; readonly amax: number }
  | { readonly kind: 'redone'; readonly amax: number }
  /** Not finite in fp32 either: the model's own inf or NaN, passed through. */
  | { readonly kind: 'not finite' }

/** A bucket's scale before its first exchange, which is in fp32 and gives the exponent. */
export const FIRST_SCALE: ScaleState = {
  exponent: undefined,
  lastAmax: 0,
  sinceGrowth: 0,
  jumps: 0,
  sinceJump: 0,
  halfType: 'fp16',
}

/** The largest reduced value lands below 2¹¹: 2⁵ is left for growth and for ranks above the mean. */
const TARGET_EXPONENT = 11
/** The largest float is just below 2¹²⁸: it, too, lands at the target. */
const EXPONENT_LIMIT = 117
const GROWTH_INTERVAL = 16
const OVERFLOW_DROP = 10
const JUMP_FACTOR = 32
const JUMP_MEMORY = 32
/** A lone tensor below this many fp32 bytes gains nothing from being narrowed. */
const SMALL_BYTES = 4096

/** Largest e with amax·2^e ≤ 2¹¹, within ±117. `amax` > 0, finite. */
export function targetExponent(amax: number): number {
  let exponent = TARGET_EXPONENT - Math.ceil(Math.log2(amax))
  // log2 rounds: put the result right where it stands on an edge.
  while (amax * 2 ** exponent > 2 ** TARGET_EXPONENT) exponent--
  while (amax * 2 ** (exponent + 1) <= 2 ** TARGET_EXPONENT) exponent++
  return Math.max(-EXPONENT_LIMIT, Math.min(EXPONENT_LIMIT, exponent))
}

/** Chooses how a bucket travels in this step. */
export function planWire(
  state: ScaleState,
  bucket: { readonly elements: number; readonly tensors: number },
): { readonly wireType: WireType; readonly exponent: number } {
  const isSmall = bucket.tensors === 1 && bucket.elements * 4 < SMALL_BYTES
  if (state.exponent === undefined || isSmall) return { wireType: 'fp32', exponent: 0 }
  if (state.halfType === 'bf16') return { wireType: 'bf16', exponent: 0 }
  return { wireType: 'fp16', exponent: state.exponent }
}

/** The state after an exchange. Shrinks at once, doubles at most every 16 exchanges, drops by 2¹⁰ after an overflow. */
export function advanceScale(state: ScaleState, outcome: ExchangeOutcome): ScaleState {
  if (outcome.kind === 'not finite') return state
  const { amax } = outcome
  const { exponent, lastAmax } = state
  const hasJumped =
    lastAmax > 0 && amax > 0 && (amax > lastAmax * JUMP_FACTOR || amax * JUMP_FACTOR < lastAmax)
  const remembered = state.sinceJump < JUMP_MEMORY ? state.jumps : 0
  const jumps = hasJumped ? remembered + 1 : remembered
  const next = {
    lastAmax: amax > 0 ? amax : lastAmax,
    sinceGrowth: state.sinceGrowth + 1,
    jumps,
    sinceJump: hasJumped ? 0 : state.sinceJump + 1,
    halfType: jumps >= 2 ? 'bf16' : state.halfType,
  } as const
  if (outcome.kind === 'redone') {
    const dropped = exponent === undefined ? undefined : Math.max(-EXPONENT_LIMIT, exponent - OVERFLOW_DROP)
    return { ...next, exponent: dropped, sinceGrowth: 0 }
  }
  if (amax === 0) return { ...next, exponent }
  const target = targetExponent(amax)
  if (exponent === undefined || target < exponent) return { ...next, exponent: target }
  if (target > exponent && next.sinceGrowth >= GROWTH_INTERVAL) {
    return { ...next, exponent: exponent + 1, sinceGrowth: 0 }
  }
  return { ...next, exponent }
}

/**
 * How the mean over `ranks` is taken: values are multiplied by 2^shift before they are summed (no overflow,
 * and a power of two loses nothing) and by `factor` afterwards in fp32. `factor` is 1 for a power-of-two count.
 */
export function planAveraging(ranks: number): { readonly shift: number; readonly factor: number } {
  const bits = Math.ceil(Math.log2(ranks))
  return { shift: -bits, factor: 2 ** bits / ranks }
}
