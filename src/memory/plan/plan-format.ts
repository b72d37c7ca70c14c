import type { TensorKind } from '../step/profile.js'
import type { ExtraKind, Keep } from './candidates.js'
import type { Reuse } from './reuse.js'

/** Format version of plan files. Bump it when an executor of the old format would do the wrong thing. */
export const PLAN_VERSION = 2

/** One storage that leaves the device and comes back. Event numbers count along the timeline of the profile. */
export interface PlannedMove {
  readonly storage: number
  readonly kind: TensorKind
  /** Of a parameter or its gradient: by which an executor knows it. */
  readonly name: string | null
  readonly bytes: number
  /** The copy out starts after this event, and must have ended before `freeBy`. */
  readonly outAfter: number
  readonly freeBy: number
  /** The copy in starts with event `inAt`, and must have ended before `useAt`; the storage dies after `until`. */
  readonly inAt: number
  readonly useAt: number
  readonly until: number
  /** Offset in the host arena; in the reload arena where the plan has one. */
  readonly hostOffset: number
  readonly reloadOffset: number | null
  /** Predicted copy times and the idle time they leave, in microseconds. */
  readonly outUs: number
  readonly inUs: number
  readonly slackUs: number
  /** Backward uses to come when it is away: what its reference count starts at. */
  readonly refs: number
  readonly packs: readonly number[]
  readonly unpacks: readonly number[]
  /**
   * The same times on the executor's clock, which ticks once per pack call, then once per unpack call:
   * start the copy out, wait for it and drop the device memory, start the copy in. Null: the profile has no calls,
   * or it is no feature map; an executor moves the others by layer.
   */
  readonly ticks: { readonly out: number; readonly free: number; readonly in: number } | null
}

/** One call of a module that saves only what it is given, and runs its forward again in the backward. */
export interface PlannedRecomputation {
  readonly name: string
  /** How many calls of this module are before it in the step. */
  readonly call: number
  /** How many tensors it is given. */
  readonly inputs: number
  /** Names of the buffers and other attributes that its forward changes: its second run must not. */
  readonly buffers: readonly string[]
}

/** Where reloaded maps lie: one arena from the first copy in to the last use, or memory of their own each. */
export type ReloadSpace =
  | {
      readonly mode: 'arena'
      readonly bytes: number
      readonly liveBytes: number
      readonly from: number
      readonly to: number
    }
  | { readonly mode: 'slots'; readonly bytes: number; readonly liveBytes: number }

/** What a run may cost, by the profile's times and bandwidths. Milliseconds and bytes. */
export interface Prediction {
  readonly peakBytes: number
  readonly peakAt: string
  readonly unplannedPeakBytes: number
  readonly stepMs: number
  /** Without stalls, recomputations included. */
  readonly baseMs: number
  readonly recomputeMs: number
  readonly stallMs: number
  /** No plan of this budget can stall less. */
  readonly leastStallMs: number
  readonly hostBytes: number
  readonly movedBytes: number
}

/** The reviewable result of planning: a pure function of profile, budget and options. */
export interface MemoryPlan {
  readonly v: typeof PLAN_VERSION
  readonly kind: 'dsc.mem.plan'
  /** sha256 of the profile file; its signature and model. */
  readonly profile: string
  readonly signature: string
  readonly model: string
  readonly budgetBytes: number
  readonly options: {
    readonly move: readonly ExtraKind[]
    readonly smallestBytes: number
    readonly reuse: boolean
  }
  readonly predicted: Prediction
  /** Blocks that run again, in order of execution. */
  readonly recompute: readonly PlannedRecomputation[]
  readonly moves: readonly PlannedMove[]
  readonly keep: readonly Keep[]
  readonly arenas: {
    readonly host: { readonly bytes: number; readonly liveBytes: number }
    readonly reload: ReloadSpace
  }
  readonly reuse: readonly Reuse[]
  /** Reference count of every storage the backward pass reads, when the forward ends. */
  readonly refs: readonly { readonly storage: number; readonly refs: number }[]
  /** What each pack call must look like for the plan to apply: `dtype|shape|stride`. */
  readonly packSignatures: readonly string[]
  /** Names of the profile's layers: what an executor recognises them by. */
  readonly layerNames: readonly string[]
  /** Layer of each pack call. */
  readonly packLayers: readonly number[]
  readonly unpackCount: number
}
