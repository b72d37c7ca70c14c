import type { PushDecision } from './plan/decide-push.js'
import type { OptimizerSettings } from './plan/optimizer-settings.js'
import type { LostPolicy, UpdateMode } from './plan/update-mode.js'

/** What is fixed before step 1. */
export interface CentralOptions {
  readonly mode: UpdateMode
  readonly workers: number
  /** A job that goes on from a checkpoint keeps what was changed meanwhile if this is as it was before. */
  readonly optimizer: OptimizerSettings
  /** Whether gradients of a step are averaged over ranks (else summed). */
  readonly isMean: boolean
  readonly lost: LostPolicy
  /** How long a sync step waits for its last rank, and ssp for a rank that holds others up, in milliseconds. */
  readonly lostAfterMs: number
  /** Where checkpoints go; undefined: none are written. */
  readonly checkpointFolder?: string | undefined
  /** A checkpoint every so many versions. */
  readonly checkpointEvery: number
}

/** What may come with a gradient. */
export interface PushExtras {
  /** Slots for which this rank has none. */
  readonly absent?: readonly number[] | undefined
  /** For this update alone; all ranks of a sync step must name the same. */
  readonly learningRate?: number | undefined
}

/** Outcome of a push; a refused one changed nothing. */
export type PushOutcome =
  | { readonly kind: 'applied' | 'waiting' | 'duplicate'; readonly version: number }
  | Extract<PushDecision, { kind: 'refuse' }>
  | {
      readonly kind: 'refuse'
      readonly reason: 'nan' | 'overflow' | 'size' | 'lost' | 'aborted' | 'rate'
      readonly message: string
    }
