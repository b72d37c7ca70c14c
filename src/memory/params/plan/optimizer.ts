import type { OptimizerSettings } from './optimizer-settings.js'
import { stepAdamw } from './step-adamw.js'
import { stepSgd } from './step-sgd.js'

/** What a step changes: parameters, and as many arrays of their length as the optimizer keeps. */
export interface UpdateState {
  readonly parameters: Float32Array
  readonly moments: readonly Float32Array[]
}

/** One parameter's part of a step. */
export interface StepRange<Settings = OptimizerSettings> {
  readonly settings: Settings
  /** In elements. */
  readonly offset: number
  readonly length: number
  /** How many steps this parameter will have made with this one, from 1. */
  readonly step: number
}

/** Makes one step in place; whether a parameter is another number after it. */
export function stepParameters(state: UpdateState, gradient: Float32Array, range: StepRange): boolean {
  const { settings, ...rest } = range
  return settings.kind === 'sgd'
    ? stepSgd(state, gradient, { settings, ...rest })
    : stepAdamw(state, gradient, { settings, ...rest })
}
