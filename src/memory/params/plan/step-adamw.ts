import { multiplyAdd } from './fused.js'
import type { AdamwSettings, StepRange, UpdateState } from './optimizer-settings.js'

/**
 * Steps the parameters of `range` in place and in float32, operation by operation like `_single_tensor_adam` of
 * torch/optim/adam.py (AdamW with foreach=False, amsgrad and capturable off), with the roundings of PyTorch's x86-64
 * kernels: they fuse one multiplication and addition each in lerp, add and addcmul, and none in addcdiv. Returns
 * whether any parameter changed.
 */
export function stepAdamw(
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
