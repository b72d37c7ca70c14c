import { DscError } from '../../../failure/dsc-error.js'

/** Stochastic gradient descent with momentum, as in torch.optim.SGD. */
export interface SgdSettings {
  readonly kind: 'sgd'
  readonly learningRate: number
  /** 0–1; 0 = none. */
  readonly momentum: number
  readonly isNesterov: boolean
  readonly weightDecay: number
}

/** Adam with decoupled weight decay, as in torch.optim.AdamW. */
export interface AdamwSettings {
  readonly kind: 'adamw'
  readonly learningRate: number
  /** Decay rates per step of the running means of gradients and of their squares, 0–1. */
  readonly betas: readonly [number, number]
  readonly epsilon: number
  readonly weightDecay: number
}

/**
 * Settings of the central node's optimizer; `maxNorm`: gradients with a larger norm, over all parameters, are scaled
 * down to it.
 */
export type OptimizerSettings = (SgdSettings | AdamwSettings) & { readonly maxNorm?: number | undefined }

/** Settings that may change during a job; omitted ones stay. `maxNorm` 0: stop clipping. */
export interface OptimizerChange {
  readonly learningRate?: number | undefined
  readonly weightDecay?: number | undefined
  readonly momentum?: number | undefined
  readonly maxNorm?: number | undefined
}

/** Arrays of the layout's length that an optimizer keeps besides the parameters. */
export const STATE_COUNTS = { sgd: 1, adamw: 2 } as const

/** The settings after a change. Throws for a setting that the optimizer does not have, or a value out of range. */
export function changeSettings(settings: OptimizerSettings, change: OptimizerChange): OptimizerSettings {
  const { maxNorm, ...other } = change
  const given = Object.entries(other).filter(([, value]) => value !== undefined)
  for (const [name] of given) {
    if (!(name in settings))
      throw new DscError('PARAMS_REFUSED', `${settings.kind} has no ${name}`, {
        hint: `what it has: ${Object.keys(settings).slice(1).join(', ')}, maxNorm`,
      })
  }
  const changed = { ...settings, ...Object.fromEntries(given) } as OptimizerSettings
  return checkSettings(maxNorm === undefined ? changed : { ...changed, maxNorm: maxNorm || undefined })
}

/**
 * The settings of a restarted server: those of its checkpoint with the changes made during the run, or the given ones,
 * if they differ from those of its last start. Throws for another optimizer.
 */
export function resumeSettings(
  given: OptimizerSettings,
  saved: { readonly optimizer: OptimizerSettings; readonly startedWith: OptimizerSettings },
): OptimizerSettings {
  if (given.kind !== saved.optimizer.kind)
    throw new DscError(
      'PARAMS_REFUSED',
      `the checkpoint is of optimizer ${saved.optimizer.kind}, the server is started with ${given.kind}`,
      { hint: `--optimizer ${saved.optimizer.kind}, or another folder for --checkpoint` },
    )
  return toJson(given) === toJson(saved.startedWith) ? saved.optimizer : given
}

/** The same text for equal settings, even if they were read from a file. */
function toJson(settings: OptimizerSettings): string {
  return JSON.stringify(
    Object.entries(settings)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .filter(([, value]) => value !== undefined),
  )
}

/** Returns the settings, or throws an error that names the first one no optimizer can work with. */
export function checkSettings(settings: OptimizerSettings): OptimizerSettings {
  const { learningRate, weightDecay, maxNorm = 1 } = settings
  if (!(learningRate >= 0 && Number.isFinite(learningRate)))
    throw outside('learningRate', learningRate, 'of at least 0')
  if (!(weightDecay >= 0 && Number.isFinite(weightDecay)))
    throw outside('weightDecay', weightDecay, 'of at least 0')
  if (!(maxNorm > 0)) throw outside('maxNorm', maxNorm, 'above 0')
  if (settings.kind === 'sgd') {
    const { momentum, isNesterov } = settings
    if (!(momentum >= 0 && momentum < 1)) throw outside('momentum', momentum, 'from 0 to below 1')
    if (isNesterov && momentum === 0)
      throw new DscError('PARAMS_REFUSED', 'nesterov needs a momentum above 0', { hint: '--momentum 0.9' })
    return settings
  }
  for (const beta of settings.betas)
    if (!(beta >= 0 && beta < 1)) throw outside('beta', beta, 'from 0 to below 1')
  if (!(settings.epsilon >= 1e-30)) throw outside('epsilon', settings.epsilon, 'of at least 1e-30')
  return settings
}

function outside(name: string, value: number, expected: string): DscError {
  return new DscError('PARAMS_REFUSED', `${name} is ${value}, expected a number ${expected}`)
}

/** The state that a step changes: parameters, and as many arrays of their length as the optimizer keeps. */
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
  /** Number of this parameter's steps including this one, from 1. */
  readonly step: number
}
