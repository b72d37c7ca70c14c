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

/** Where the ranks meet, by which plan they exchange, and who this rank is. */
export interface JoinOptions {
  readonly rendezvous: { readonly host: string; readonly port: number }
  readonly plan: PlanFile
  /** Ranks of one job meet each other only. Default: `user-` and the number of this process's user. */
  readonly job?: string | undefined
  /** Wanted rank; by default in order of arrival. */
  readonly rank?: number | undefined
  /** Address at which other ranks reach this one. Default 127.0.0.1. */
  readonly listenHost?: string | undefined
  readonly token?: string | undefined
  /** Default `ring`; `direct` sums in fp32 and takes two rounds, with a connection to every rank: for up to 8. */
  readonly mode?: Mode | undefined
  /**
   * With a plan of two levels: ranks with the same word take their sum through memory. Default: those of one machine, and
   * of one network and process namespace.
   */
  readonly hostKey?: string | undefined
  /** Steps this rank has committed in an earlier epoch. Default 0. */
  readonly committedSteps?: number | undefined
  /** Scales of an earlier epoch or a checkpoint, as `session.scales()` gave them. */
  readonly scales?: readonly ScaleState[] | undefined
  /** A rank is silent or makes no progress. It may come back. */
  readonly onSuspect?: (suspect: Suspect) => void
  /** While this rank waits for the others, somebody wanted to join and did not fit: who, and what differs. */
  readonly onTurnedAway?: (problem: string) => void
  readonly signal?: AbortSignal | undefined
}

/** Joins a job: waits until all ranks are there, connects to them, and reserves the fusion buffers. */
export async function joinExchange(options: JoinOptions): Promise<ExchangeSession> {
  const session = new ExchangeSession(options)
  await session.open()
  return session
}

/** A rank's membership in one epoch of a job. After a failure only `close` is left: join again for a new epoch. */
export class ExchangeSession {
  readonly #options: JoinOptions
  readonly #mode: Mode
  #fusion: FusionBuffers | undefined
  readonly #progress: { -readonly [Key in keyof Progress]: Progress[Key] }
  #scales: readonly ScaleState[]
  #membership: Membership | undefined
  /** The last one that was begun. */
  #step: ExchangeStep | undefined

  /** Use `joinExchange`, which opens it, too. */
  constructor(options: JoinOptions) {
    const { plan, mode = 'ring', committedSteps = 0 } = options
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

  /** Counts how often this job's ranks have met. */
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

  /** Begins a step. A step before it whose gradients were sent must have been committed. */
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
    // A rank may wait on both levels at once: the one that it has waited on for longest counts.
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
