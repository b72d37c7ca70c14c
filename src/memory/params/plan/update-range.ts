import { type SgdOptions, type SgdState, stepSgd } from './momentum-sgd.js'

/** The largest magnitudes there can be; bounds, from above. */
export interface UpdateRange {
  readonly parameter: number
  readonly velocity: number
}

/** Below this bound float32 cannot overflow, however it rounds. */
const SAFE = 2 ** 127

/** The range after a step with gradients of at most `gradient`: the same arithmetic with magnitudes. */
export function advanceRange(range: UpdateRange, gradient: number, options: SgdOptions): UpdateRange {
  const { learningRate, momentum, weightDecay } = options
  const velocity = momentum * range.velocity + gradient + weightDecay * range.parameter
  return { velocity, parameter: range.parameter + learningRate * velocity }
}

/** Whether a step to `range` cannot overflow, so that nobody needs to look at the values. */
export function isSafe({ parameter, velocity }: UpdateRange): boolean {
  return parameter < SAFE && velocity < SAFE
}

/** The range of values as they are. */
export function measureRange(parameters: Float32Array, velocity: Float32Array): UpdateRange {
  return { parameter: findLargest(parameters), velocity: findLargest(velocity) }
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

/** Index of the first value that a step would make infinite, or undefined. Changes nothing. */
export function findOverflow(
  { parameters, velocity }: SgdState,
  gradient: Float32Array,
  options: SgdOptions,
): number | undefined {
  const one = { parameters: new Float32Array(1), velocity: new Float32Array(1) }
  const slope = new Float32Array(1)
  for (let at = 0; at < gradient.length; at++) {
    one.parameters[0] = parameters[at]!
    one.velocity[0] = velocity[at]!
    slope[0] = gradient[at]!
    stepSgd(one, slope, options)
    if (!Number.isFinite(one.parameters[0]) || !Number.isFinite(one.velocity[0])) return at
  }
  return undefined
}
