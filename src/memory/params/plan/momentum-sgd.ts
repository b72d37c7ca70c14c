/** How the central node steps: stochastic gradient descent with momentum, as torch.optim.SGD does it. */
export interface SgdOptions {
  readonly learningRate: number
  /** 0–1; 0 = none. */
  readonly momentum: number
  readonly weightDecay: number
}

/** What a step changes. */
export interface SgdState {
  readonly parameters: Float32Array
  readonly velocity: Float32Array
}

/**
 * Adds one gradient to the parameters, in place and in float32 like torch: velocity ← momentum·velocity + gradient,
 * parameters ← parameters − learningRate·velocity.
 */
export function stepSgd(
  { parameters, velocity }: SgdState,
  gradient: Float32Array,
  options: SgdOptions,
): void {
  const rate = Math.fround(options.learningRate)
  const momentum = Math.fround(options.momentum)
  const decay = Math.fround(options.weightDecay)
  for (let at = 0; at < parameters.length; at++) {
    const slope = decay === 0 ? gradient[at]! : Math.fround(gradient[at]! + decay * parameters[at]!)
    const speed = Math.fround(Math.fround(momentum * velocity[at]!) + slope)
    velocity[at] = speed
    parameters[at] = parameters[at]! - rate * speed
  }
}

/** Sums gradients in rank order, in float32, and divides by their number for the `mean`. */
export function reduceGradients(gradients: readonly Float32Array[], to: 'sum' | 'mean'): Float32Array {
  const sum = gradients[0]!.slice()
  for (const gradient of gradients.slice(1)) addTo(sum, gradient)
  if (to === 'mean' && gradients.length > 1)
    for (let at = 0; at < sum.length; at++) sum[at]! /= gradients.length
  return sum
}

/** A loop of its own, so that it is compiled for two float32 arrays only. */
function addTo(sum: Float32Array, gradient: Float32Array): void {
  for (let at = 0; at < sum.length; at++) sum[at] = sum[at]! + gradient[at]!
}
