import type { TensorKind } from '../step/profile.js'
import type { ExtraKind, Keep } from './candidates.js'
import type { Reuse } from './reuse.js'

/** Format version of plan files. Bump it when an executor of the old format would do the wrong thing. */
export const PLAN_VERSION = 2

/** One storage that leaves the device and comes back. Event numbers count along the timeline of the profile. */
export interface PlannedMove {
  readonly storage: number
  readonly kind: TensorKind
  /** For a parameter or its gradient: the name by which an executor knows it. */
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
  /** Predicted copy times and the remaining idle time, in microseconds. */
  readonly outUs: number
  readonly inUs: number
  readonly slackUs: number
  /** Remaining backward uses when it leaves: the initial value of its reference count. */
  readonly refs: number
  readonly packs: readonly number[]
  readonly unpacks: readonly number[]
  /**
   * The same times on the executor's clock, which ticks once per pack call, then once per unpack call: start the copy
   * out, wait for it and drop the device memory, start the copy in. Null if the profile has no calls, or the storage is
   * not a feature map; an executor moves those by layer.
   */
  readonly ticks: { readonly out: number; readonly free: number; readonly in: number } | null
}

/** One call of a module that saves only its inputs, and runs its forward again in the backward. */
export interface PlannedRecomputation {
  readonly name: string
  /** Number of earlier calls of this module in the step. */
  readonly call: number
  /** Number of input tensors. */
  readonly inputs: number
  /** Names of the buffers and other attributes that its forward changes: its second run must not change them. */
  readonly buffers: readonly string[]
}

/** Where reloaded maps lie: in one arena from the first copy in to the last use, or each in memory of its own. */
export type ReloadSpace =
  | {
      readonly mode: 'arena'
      readonly bytes: number
      readonly liveBytes: number
      readonly from: number
      readonly to: number
    }
  | { readonly mode: 'slots'; readonly bytes: number; readonly liveBytes: number }

/** Predicted cost of a run, by the profile's times and bandwidths. Milliseconds and bytes. */
export interface Prediction {
  readonly peakBytes: number
  readonly peakAt: string
  readonly unplannedPeakBytes: number
  readonly stepMs: number
  /** Without stalls, recomputations included. */
  readonly baseMs: number
  readonly recomputeMs: number
  readonly stallMs: number
  /** No plan within this budget can stall less. */
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
  /** Expected signature of each pack call for the plan to apply: `dtype|shape|stride`. */
  readonly packSignatures: readonly string[]
  /** Names of the profile's layers, by which an executor recognizes them. */
  readonly layerNames: readonly string[]
  /** Layer of each pack call. */
  readonly packLayers: readonly number[]
  readonly unpackCount: number
}
