import { z } from 'zod'
import { byteCount, count, list, milliseconds } from '../../answers/fields.js'
import { tensorKind } from '../step/profile.js'

/** Format version of plan files. Bump it when an executor of the old format would do the wrong thing. */
export const PLAN_VERSION = 2

const number = z.number()

const move = z
  .object({
    storage: count,
    kind: tensorKind,
    /** For a parameter or its gradient: the name by which an executor knows it. */
    name: z.string().nullable(),
    bytes: count,
    /** The copy out starts after this event, and must have ended before `freeBy`. */
    outAfter: z.int().min(-1),
    freeBy: count,
    /** The copy in starts with event `inAt`, and must have ended before `useAt`; the storage dies after `until`. */
    inAt: count,
    useAt: count,
    until: count,
    /** Offset in the host arena; in the reload arena where the plan has one. */
    hostOffset: count,
    reloadOffset: count.nullable(),
    /** Predicted copy times and the remaining idle time, in microseconds. */
    outUs: number,
    inUs: number,
    slackUs: number,
    /** Remaining backward uses when it leaves: the initial value of its reference count. */
    refs: count,
    packs: list(count),
    unpacks: list(count),
    /**
     * The same times on the executor's clock, which ticks once per pack call, then once per unpack call: start the copy
     * out, wait for it and drop the device memory, start the copy in. Null if the profile has no calls, or the storage is
     * not a feature map; an executor moves those by layer.
     */
    ticks: z.object({ out: count, free: count, in: count }).readonly().nullable(),
  })
  .readonly()

const recomputation = z
  .object({
    name: z.string(),
    /** Number of earlier calls of this module in the step. */
    call: count,
    /** Number of input tensors. */
    inputs: count,
    /** Names of the buffers and other attributes that its forward changes: its second run must not change them. */
    buffers: list(z.string()),
  })
  .readonly()

const space = { bytes: count, liveBytes: count }
const reloadSpace = z.discriminatedUnion('mode', [
  z.object({ mode: z.literal('arena'), ...space, from: count, to: count }).readonly(),
  z.object({ mode: z.literal('slots'), ...space }).readonly(),
])

/** The fields of a prediction, in plan files and in answers. */
export const PREDICTED = {
  peakBytes: byteCount,
  peakAt: z.string(),
  unplannedPeakBytes: byteCount,
  stepMs: milliseconds,
  /** Without stalls, recomputations included. */
  baseMs: milliseconds,
  recomputeMs: milliseconds,
  stallMs: milliseconds,
  /** No plan within this budget can stall less. */
  leastStallMs: milliseconds,
  hostBytes: byteCount,
  movedBytes: byteCount,
}
const prediction = z.object(PREDICTED).readonly()

const keep = z.object({ storage: count, bytes: count, why: z.string() }).readonly()

const reuse = z
  .object({
    /** The pack call that saved the map for the layer that reads it last. */
    pack: count,
    layer: count,
    storage: count,
    bytes: count,
  })
  .readonly()

const extraKind = tensorKind.extract(['param', 'param_grad', 'opt_state'])

/** The form of plan files. */
export const planSchema = z
  .object({
    v: z.literal(PLAN_VERSION),
    kind: z.literal('dsc.mem.plan'),
    /** sha256 of the profile file; its signature and model. */
    profile: z.string(),
    signature: z.string(),
    model: z.string(),
    budgetBytes: count,
    options: z.object({ move: list(extraKind), smallestBytes: count, reuse: z.boolean() }).readonly(),
    predicted: prediction,
    /** Blocks that run again, in order of execution. */
    recompute: list(recomputation),
    moves: list(move),
    keep: list(keep),
    arenas: z.object({ host: z.object(space).readonly(), reload: reloadSpace }).readonly(),
    reuse: list(reuse),
    /** Reference count of every storage the backward pass reads, when the forward ends. */
    refs: list(z.object({ storage: count, refs: count }).readonly()),
    /** Expected signature of each pack call for the plan to apply: `dtype|shape|stride`. */
    packSignatures: list(z.string()),
    /** Names of the profile's layers, by which an executor recognizes them. */
    layerNames: list(z.string()),
    /** Layer of each pack call. */
    packLayers: list(count),
    unpackCount: count,
  })
  .readonly()

/** Kinds besides feature maps that may leave the device when parameters are updated on the host (the mirror). */
export type ExtraKind = z.infer<typeof extraKind>
/** One storage that leaves the device and comes back. Event numbers count along the timeline of the profile. */
export type PlannedMove = z.infer<typeof move>
/** One call of a module that saves only its inputs, and runs its forward again in the backward. */
export type PlannedRecomputation = z.infer<typeof recomputation>
/** Where reloaded maps lie: in one arena from the first copy in to the last use, or each in memory of its own. */
export type ReloadSpace = z.infer<typeof reloadSpace>
/** Predicted cost of a run, by the profile's times and bandwidths. */
export type Prediction = z.infer<typeof prediction>
/** A storage that cannot move, and why: shown by `dsc memory explain`. */
export type Keep = z.infer<typeof keep>
/** A saved map that dies under its feature gradient, which is written into its space (seed 002, S6). */
export type Reuse = z.infer<typeof reuse>
/** The reviewable result of planning: a pure function of profile, budget and options. */
export type MemoryPlan = z.infer<typeof planSchema>
