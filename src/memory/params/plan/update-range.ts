import { stepParameters } from './optimizer.js'
import type { OptimizerSettings, UpdateState } from './optimizer-settings.js'

/** Upper bounds of all magnitudes. */
export interface UpdateRange {
  readonly parameter: number
  /** For sgd's velocity; adamw needs no bound of its own. */
  readonly velocity: number
}

/** Below these bounds float32 cannot overflow, however it rounds: values, and gradients that are squared. */
const SAFE = 2 ** 127
const SAFE_TO_SQUARE = 2 ** 60

/** The range after a step with gradients of at most `gradient`: the same arithmetic on magnitudes. */
export function advanceRange(range: UpdateRange, gradient: number, settings: OptimizerSettings): UpdateRange {
  const { learningRate, weightDecay } = settings
  if (settings.kind === 'sgd') {
    const slope = gradient + weightDecay * range.parameter
    const velocity = settings.momentum * range.velocity + slope
    return { velocity, parameter: range.parameter + learningRate * (velocity + slope) }
  }
  if (gradient >= SAFE_TO_SQUARE) return { parameter: Number.POSITIVE_INFINITY, velocity: 0 }
  // By Cauchy and Schwarz the mean is at most `ratio` roots of the mean square where beta1² < beta2; squares that
  // vanish in float32 belong to gradients below 2^-74, which epsilon divides. Bias corrections add 1 / (1 − beta1).
  const [beta1, beta2] = settings.betas
  const spread = 1 - (beta1 * beta1) / beta2
  if (!(spread > 0)) return { parameter: Number.POSITIVE_INFINITY, velocity: 0 }
  const ratio = (1 - beta1) / Math.sqrt((1 - beta2) * spread)
  const most = learningRate * (ratio + 2 ** -74 / settings.epsilon)
  const corrected = most / (1 - beta1)
  return {
    velocity: 0,
    parameter: range.parameter * Math.max(1, learningRate * weightDecay) + corrected,
  }
}

/** Whether a step to `range` cannot overflow, so that the values need no check. */
export function isSafe({ parameter, velocity }: UpdateRange): boolean {
  return parameter < SAFE && velocity < SAFE
}

/** Measures the range of the current values. */
export function measureRange({ parameters, moments }: UpdateState): UpdateRange {
  return { parameter: findLargest(parameters), velocity: findLargest(moments[0]!) }
}

/** The largest magnitude, 0 for none; NaN where a value is not finite. */
export function findLargest(values: Float32Array): number {
  let largest = 0
  let sum = 0
  for (let at = 0; at < values.length; at++) {
    const magnitude = Math.abs(values[at]!)
    if (magnitude > largest) largest = magnitude
    sum += magnitude - magnitude // NaN as soon as one value is not finite
  }
  return largest + sum
}

/** Index of the first value from `offset` on that a step would make infinite, or undefined. Changes nothing. */
export function findOverflow(
  { parameters, moments }: UpdateState,
  gradient: Float32Array,
  range: { settings: OptimizerSettings; offset: number; length: number; step: number },
): number | undefined {
  const { settings, offset, length, step } = range
  const one = { parameters: new Float32Array(1), moments: moments.map(() => new Float32Array(1)) }
  const slope = new Float32Array(1)
  const staysFinite = (values: Float32Array) => Number.isFinite(values[0])
  for (let at = offset; at < offset + length; at++) {
    one.parameters[0] = parameters[at]!
    for (const [index, values] of moments.entries()) one.moments[index]![0] = values[at]!
    slope[0] = gradient[at]!
    stepParameters(one, slope, { settings, offset: 0, length: 1, step })
    if (!staysFinite(one.parameters) || !one.moments.every(staysFinite)) return at
  }
  return undefined
}
