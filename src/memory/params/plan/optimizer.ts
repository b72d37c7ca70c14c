import type { AdamwSettings, SgdSettings, StepRange, UpdateState } from './optimizer-settings.js'

/** Makes one step in place; returns whether any parameter changed. */
export function stepParameters(state: UpdateState, gradient: Float32Array, range: StepRange): boolean {
  const { settings, ...rest } = range
  return settings.kind === 'sgd'
    ? stepSgd(state, gradient, { settings, ...rest })
    : stepAdamw(state, gradient, { settings, ...rest })
}

/**
 * Steps the parameters of `range` in place and in float32, in the order of torch.optim.SGD(foreach=False) and with its
 * roundings: gradient ← gradient + weightDecay·parameter; velocity ← momentum·velocity + gradient; Nesterov: gradient ←
 * gradient + momentum·velocity, else velocity; parameter ← parameter − learningRate·gradient. Returns whether any
 * parameter changed.
 */
export function stepSgd(
  { parameters, moments }: UpdateState,
  gradient: Float32Array,
  { settings, offset, length }: StepRange<SgdSettings>,
): boolean {
  const velocity = moments[0]!
  const down = Math.fround(-settings.learningRate)
  const momentum = Math.fround(settings.momentum)
  const decay = Math.fround(settings.weightDecay)
  const { isNesterov } = settings
  let hasChanged = false
  for (let at = offset; at < offset + length; at++) {
    const before = parameters[at]!
    const slope = decay === 0 ? gradient[at]! : multiplyAdd(before, decay, gradient[at]!)
    const speed = momentum === 0 ? slope : Math.fround(Math.fround(momentum * velocity[at]!) + slope)
    if (momentum !== 0) velocity[at] = speed
    const after = multiplyAdd(isNesterov ? multiplyAdd(speed, momentum, slope) : speed, down, before)
    parameters[at] = after
    hasChanged ||= after !== before
  }
  return hasChanged
}

/**
 * Steps the parameters of `range` in place and in float32, operation by operation like `_single_tensor_adam` of
 * torch/optim/adam.py (AdamW with foreach=False, amsgrad and capturable off), with the roundings of PyTorch's x86-64
 * kernels: they fuse one multiplication and addition each in lerp, add and addcmul, and none in addcdiv. Returns
 * whether any parameter changed.
 */
function stepAdamw(
  { parameters, moments }: UpdateState,
  gradient: Float32Array,
  { settings, offset, length, step }: StepRange<AdamwSettings>,
): boolean {
  const [mean, square] = moments as readonly [Float32Array, Float32Array]
  const { learningRate, weightDecay, betas } = settings
  const keep = Math.fround(1 - learningRate * weightDecay)
  const share = Math.fround(1 - betas[0])
  // torch's lerp starts at the nearer end, so that weights near 1 lose nothing.
  const isNearEnd = share >= 0.5
  const weight = isNearEnd ? Math.fround(share - 1) : share
  const beta2 = Math.fround(betas[1])
  const squareShare = Math.fround(1 - betas[1])
  const root = Math.fround(Math.sqrt(1 - betas[1] ** step))
  const down = Math.fround(-learningRate / (1 - betas[0] ** step))
  const epsilon = Math.fround(settings.epsilon)
  let hasChanged = false
  for (let at = offset; at < offset + length; at++) {
    const before = parameters[at]!
    const slope = gradient[at]!
    const old = mean[at]!
    const average = multiplyAdd(weight, Math.fround(slope - old), isNearEnd ? slope : old)
    mean[at] = average
    const energy = multiplyAdd(Math.fround(squareShare * slope), slope, Math.fround(beta2 * square[at]!))
    square[at] = energy
    const size = Math.fround(Math.fround(Math.fround(Math.sqrt(energy)) / root) + epsilon)
    const after = Math.fround(Math.fround(before * keep) + Math.fround(Math.fround(down * average) / size))
    parameters[at] = after
    hasChanged ||= after !== before
  }
  return hasChanged
}

/**
 * `a`·`b` + `c` of float32 values, rounded to float32 once, like the FMA instruction of a CPU and thus PyTorch's
 * kernels. The product is exact in float64; the sum is rounded to 53 bits first, which matters only when it lands
 * halfway between two float32 values.
 */
function multiplyAdd(a: number, b: number, c: number): number {
  const product = a * b
  const sum = product + c
  const rounded = Math.fround(sum)
  const rest = sum - rounded
  // `sum + rest` is the float32 value on the other side exactly when `sum` is halfway between both.
  if (rest !== 0 && Math.fround(sum + rest) === sum + rest) return breakTie(product, c, rounded)
  return rounded
}

/** Rounds product + c, whose float64 sum is halfway between two float32 values, by what that sum has lost. */
function breakTie(product: number, c: number, rounded: number): number {
  const sum = product + c
  const added = sum - product
  const lost = product - (sum - added) + (c - added) // Knuth's two-sum: exact
  if (lost === 0 || !Number.isFinite(rounded)) return rounded
  const other = sum + (sum - rounded)
  return lost > 0 ? Math.max(rounded, other) : Math.min(rounded, other)
}
