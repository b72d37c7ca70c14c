import type { StepRange, UpdateState } from './optimizer-settings.js'
import { stepAdamw } from './step-adamw.js'
import { stepSgd } from './step-sgd.js'

/** Makes one step in place; returns whether any parameter changed. */
export function stepParameters(state: UpdateState, gradient: Float32Array, range: StepRange): boolean {
  const { settings, ...rest } = range
  return settings.kind === 'sgd'
    ? stepSgd(state, gradient, { settings, ...rest })
    : stepAdamw(state, gradient, { settings, ...rest })
}
