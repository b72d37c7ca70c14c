import { DscError } from '../failure/dsc-error.js'
import { formatCount } from '../model/format-count.js'
import { nameDefaultJob } from '../platform/default-job.js'
import type { Mode } from './connect-links.js'
import { type FusionBuffers, openFusionBuffers } from './fusion-buffers.js'
import { type Membership, openMembership, type Progress } from './membership.js'
import { FIRST_SCALE, type ScaleState } from './plan/scale.js'
import type { PlanFile } from './plan-files.js'
import type { Suspect } from './rendezvous/join-rendezvous.js'
import { ExchangeStep } from './step.js'

/** The rendezvous, the plan, and the identity of this rank. */
export interface JoinOptions {
  readonly rendezvous: { readonly host: string; readonly port: number }
  readonly plan: PlanFile
  /** Only ranks of the same job meet. Default: `user-` and the number of this process's user. */
  readonly job?: string | undefined
  /** Requested rank; by default in order of arrival. */
  readonly rank?: number | undefined
  /** Address at which other ranks reach this one. Default 127.0.0.1. */
  readonly listenHost?: string | undefined
  readonly token?: string | undefined
  /**
   * Default `ring`, with int8 `direct`, which sums in fp32 and takes two rounds, with a connection to every rank: for up
   * to 8 ranks.
   */
  readonly mode?: Mode | undefined
  /**
   * With a plan of two levels: ranks with the same key sum through memory. Default: those of one machine, and of one
   * network and process namespace.
   */
  readonly hostKey?: string | undefined
  /** Steps that this rank committed in an earlier epoch. Default 0. */
  readonly committedSteps?: number | undefined
  /** Scales of an earlier epoch or a checkpoint, from `session.scales()`. */
  readonly scales?: readonly ScaleState[] | undefined
  /** Called when a rank is silent or makes no progress. It may recover. */
  readonly onSuspect?: (suspect: Suspect) => void
  /**
   * Called when, while this rank waits for the others, a rank that does not fit tried to join; says which one and what
   * differs.
   */
  readonly onTurnedAway?: (problem: string) => void
  readonly signal?: AbortSignal | undefined
}

/** Joins a job: waits until all ranks are there, connects to them, and reserves the fusion buffers. */
export async function joinExchange(options: JoinOptions): Promise<ExchangeSession> {
  const session = new ExchangeSession(options)
  await session.open()
  return session
}

/** A rank's membership in one epoch of a job. After a failure only `close` works: join again for a new epoch. */
export class ExchangeSession {
  readonly #options: JoinOptions
  readonly #mode: Mode
  #fusion: FusionBuffers | undefined
  readonly #progress: { -readonly [Key in keyof Progress]: Progress[Key] }
  #scales: readonly ScaleState[]
  #membership: Membership | undefined
  /** The last step begun. */
  #step: ExchangeStep | undefined

  /** Use `joinExchange`, which also opens it. */
  constructor(options: JoinOptions) {
    const { plan, committedSteps = 0 } = options
    const { mode = plan.wire === 'int8' ? 'direct' : 'ring' } = options
    if (plan.wire === 'int8' && mode === 'ring')
      throw new DscError('USAGE', 'int8 goes from each rank to all: not in mode ring', {
        hint: 'dsc exchange plan --wire fp16, or leave mode out',
      })
    this.#options = options
    this.#mode = mode
    this.#scales = options.scales ?? plan.buckets.map(() => FIRST_SCALE)
    if (this.#scales.length !== plan.buckets.length)
      throw new DscError(
        'EXCHANGE_MISMATCH',
        `the scales are of ${formatCount(this.#scales.length, 'bucket')}, the plan has ${plan.buckets.length}`,
        {
          hint: 'leave scales out on all ranks where the buckets are others: the next step travels in fp32 then',
        },
      )
    this.#progress = {
      step: committedSteps,
      bucket: undefined,
      phase: undefined,
      isInStep: false,
      waiting: undefined,
    }
  }

  /** Meets the other ranks. */
  async open(): Promise<void> {
    const { plan, job = nameDefaultJob(), rank, token, hostKey } = this.#options
    const { listenHost: host = '127.0.0.1' } = this.#options
    const { ranks, wire, levels = 1 } = plan
    const { step: committedSteps } = this.#progress
    const planHash = `${plan.hash}/${this.#mode}${levels === 2 ? '/two levels' : ''}`
    this.#membership = await openMembership({
      rendezvous: this.#options.rendezvous,
      join: { job, ranks, wire, planHash, host, committedSteps, rank, token, hostKey },
      mode: this.#mode,
      levels,
      openCodec: (found) => {
        this.#fusion = openFusionBuffers(plan, this.#mode, found)
        return this.#fusion.codec
      },
      progress: () => this.#progress,
      onSuspect: (suspect) => this.#options.onSuspect?.(suspect),
      onTurnedAway: (problem) => this.#options.onTurnedAway?.(problem),
      signal: this.#options.signal,
    })
  }

  get rank(): number {
    return this.#opened.welcome.rank
  }

  get ranks(): number {
    return this.#options.plan.ranks
  }

  /** Number of times that this job's ranks have met. */
  get epoch(): number {
    return this.#opened.welcome.epoch
  }

  /** Steps that each rank had committed when it joined, by rank. */
  get joinedSteps(): readonly number[] {
    return this.#opened.welcome.peers.map((peer) => peer.committedSteps)
  }

  /** Steps that all ranks have committed. */
  committedSteps(): number {
    return this.#progress.step
  }

  /** Scale of every bucket: part of a checkpoint. */
  scales(): readonly ScaleState[] {
    return this.#scales
  }

  /** Begins a step. An earlier step must have been committed if any of its gradients were sent. */
  beginStep(): ExchangeStep {
    const membership = this.#opened
    membership.check()
    if (this.#step?.isUnderWay)
      throw new DscError(
        'EXCHANGE_MISMATCH',
        `step ${this.#progress.step} is under way: gradients of it were sent, and it is not committed`,
        { hint: 'commit it, or close the session and join again to repeat it' },
      )
    this.#progress.isInStep = true
    membership.beginStep()
    // This rank may wait on both levels at once: the longest wait counts.
    const waits = new Map<string, { readonly forRank: number; readonly sinceMs: number }>()
    this.#step = new ExchangeStep({
      plan: this.#options.plan,
      mode: this.#mode,
      fusion: this.#fusion!,
      membership,
      step: this.#progress.step,
      scales: this.#scales,
      onBucket: (bucket) => {
        this.#progress.bucket = bucket
      },
      onWaiting: (level) => (forRank, phase) => {
        this.#progress.phase = phase
        if (forRank === undefined) waits.delete(level)
        else waits.set(level, { forRank, sinceMs: performance.now() })
        this.#progress.waiting = [...waits.values()].toSorted((a, b) => a.sinceMs - b.sinceMs)[0]
      },
      onCommitted: (scales) => {
        this.#scales = scales
        this.#progress.step++
        this.#progress.isInStep = false
        this.#progress.bucket = undefined
      },
    })
    return this.#step
  }

  /** Says goodbye. The other ranks may go on without this one until their next step. */
  async close(): Promise<void> {
    this.#opened.close(this.#progress.step)
  }

  get #opened(): Membership {
    if (!this.#membership) throw new Error('the session is not open: use joinExchange')
    return this.#membership
  }
}
