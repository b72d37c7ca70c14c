import type { PushDecision } from './plan/decide-push.js'
import type { SgdOptions } from './plan/momentum-sgd.js'
import type { LostPolicy, UpdateMode } from './plan/update-mode.js'

/** What is fixed before step 1. */
export interface CentralOptions {
  readonly mode: UpdateMode
  readonly workers: number
  readonly sgd: SgdOptions
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

/** Outcome of a push; a refused one changed nothing. */
export type PushOutcome =
  | { readonly kind: 'applied' | 'waiting' | 'duplicate'; readonly version: number }
  | Extract<PushDecision, { kind: 'refuse' }>
  | {
      readonly kind: 'refuse'
      readonly reason: 'nan' | 'overflow' | 'size' | 'lost' | 'aborted'
      readonly message: string
    }
