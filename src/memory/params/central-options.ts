import type { PushDecision } from './plan/decide-push.js'
import type { OptimizerSettings } from './plan/optimizer-settings.js'
import type { LostPolicy, UpdateMode } from './plan/update-mode.js'

/** Options that are fixed before step 1. */
export interface CentralOptions {
  readonly mode: UpdateMode
  readonly workers: number
  /** A job that resumes from a checkpoint keeps changes made during the run if this option is the same as before. */
  readonly optimizer: OptimizerSettings
  /** Whether gradients of a step are averaged over ranks (else summed). */
  readonly isMean: boolean
  readonly lost: LostPolicy
  /** How long a sync step waits for its last rank, and ssp for a rank that holds up others, in milliseconds. */
  readonly lostAfterMs: number
  /** Folder of checkpoints; undefined: none are written. */
  readonly checkpointFolder?: string | undefined
  /** Number of versions between two checkpoints. */
  readonly checkpointEvery: number
}

/** Optional data of a push. */
export interface PushExtras {
  /** Slots for which this rank has no gradient. */
  readonly absent?: readonly number[] | undefined
  /** For this update only; all ranks of a sync step must give the same. */
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
