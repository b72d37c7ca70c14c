import { multiplyAdd } from './fused.js'
import type { SgdSettings, StepRange, UpdateState } from './optimizer-settings.js'

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
