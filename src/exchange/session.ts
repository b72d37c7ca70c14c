import type { Mode } from './connect-links.js'
import { openFusionBuffers } from './fusion-buffers.js'
import { openMembership, type Progress } from './membership.js'
import { FIRST_SCALE, type ScaleState } from './plan/scale.js'
import type { PlanFile } from './plan-files.js'
import type { Suspect } from './rendezvous/client.js'
import { beginStep, type ExchangeStep } from './step.js'

export interface JoinOptions {
  readonly rendezvous: { readonly host: string; readonly port: number }
  readonly plan: PlanFile
  /** Ranks of one job meet each other only. Default `default`. */
  readonly job?: string | undefined
  /** Wanted rank; by default in order of arrival. */
  readonly rank?: number | undefined
  /** Address at which other ranks reach this one. Default 127.0.0.1. */
  readonly listenHost?: string | undefined
  readonly token?: string | undefined
  /** Default `ring`; `direct` sums in fp32 and takes two rounds, with a connection to every rank: for up to 8. */
  readonly mode?: Mode | undefined
  /** Steps this rank has committed in an earlier epoch. Default 0. */
  readonly committedSteps?: number | undefined
  /** Scales of an earlier epoch or a checkpoint, as `session.scales()` gave them. */
  readonly scales?: readonly ScaleState[] | undefined
  /** A rank is silent or makes no progress. It may come back. */
  readonly onSuspect?: (suspect: Suspect) => void
  readonly signal?: AbortSignal | undefined
}

/** A rank's membership in one epoch of a job. After a failure only `close` is left: join again for a new epoch. */
export interface ExchangeSession {
  readonly rank: number
  readonly ranks: number
  /** Counts how often this job's ranks have met. */
  readonly epoch: number
  /** Steps that each rank had committed when it joined, by rank. */
  readonly joinedSteps: readonly number[]
  readonly committedSteps: () => number
  /** Scale of every bucket: part of a checkpoint. */
  readonly scales: () => readonly ScaleState[]
  readonly beginStep: () => ExchangeStep
  readonly close: () => Promise<void>
}

/** Joins a job: waits until all ranks are there, connects to them, and reserves the fusion buffers. */
export async function joinExchange(options: JoinOptions): Promise<ExchangeSession> {
  const { plan, mode = 'ring', listenHost = '127.0.0.1', committedSteps = 0 } = options
  const fusion = openFusionBuffers(plan, mode)
  let step = committedSteps
  let scales = options.scales ?? plan.buckets.map(() => FIRST_SCALE)
  let bucket: number | undefined
  let phase: string | undefined
  let waiting: Progress['waiting']
  let isInStep = false
  const membership = await openMembership({
    rendezvous: options.rendezvous,
    join: {
      job: options.job ?? 'default',
      ranks: plan.ranks,
      wire: plan.wire,
      planHash: `${plan.hash}/${mode}`,
      host: listenHost,
      committedSteps,
      rank: options.rank,
      token: options.token,
    },
    mode,
    codec: fusion.codec,
    progress: () => ({ step, bucket, phase, isInStep, waiting }),
    onSuspect: (suspect) => options.onSuspect?.(suspect),
    signal: options.signal,
  })
  const { welcome } = membership
  return {
    rank: welcome.rank,
    ranks: plan.ranks,
    epoch: welcome.epoch,
    joinedSteps: welcome.peers.map((peer) => peer.committedSteps),
    committedSteps: () => step,
    scales: () => scales,
    beginStep() {
      membership.check()
      isInStep = true
      membership.stepBegins()
      return beginStep({
        plan,
        mode,
        fusion,
        membership,
        step,
        scales,
        onBucket(index) {
          bucket = index
        },
        onWaiting(forRank, inPhase) {
          phase = inPhase
          waiting = forRank === undefined ? undefined : { forRank, sinceMs: performance.now() }
        },
        onCommitted(next) {
          scales = next
          step++
          isInStep = false
          bucket = undefined
        },
      })
    },
    async close() {
      membership.close(step)
    },
  }
}
