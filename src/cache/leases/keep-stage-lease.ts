import type { Copy } from '../../model/copy.js'
import type { Cache } from '../cache.js'

/** A stager that has not renewed its lease for this long may be replaced, even if its process seems alive. */
export const STAGE_LEASE_MS = 120_000

const RENEW_INTERVAL_MS = 1000
/** Number of nodes staging together that may all renew at that pace: the record can take that many writes a second. */
const STAGERS_AT_THIS_PACE = 100
/** Half of the silence after which a staging no longer counts against its node's bandwidth. */
const MAX_RENEW_INTERVAL_MS = 5000

/** Time between two renewals, in ms, when this many nodes stage a dataset together. */
export function planRenewal(stagers: number): number {
  const paceMs = (RENEW_INTERVAL_MS * stagers) / STAGERS_AT_THIS_PACE
  return Math.min(MAX_RENEW_INTERVAL_MS, Math.max(RENEW_INTERVAL_MS, paceMs))
}

/** The copy to stage, and the lease to do so. */
interface StageTurn {
  readonly copy: Copy
  readonly stageLeaseId: string
}

/**
 * A stager's lease that renews itself every second, with its progress, until it is stopped; less often if more than a
 * hundred nodes stage `together`. `beforeRenewal` runs before each renewal, but after its time was read.
 */
export class KeptStageLease {
  /** Aborts when the caller's signal does, or when the lease is lost. */
  readonly signal: AbortSignal
  readonly #cache: Cache
  readonly #turn: StageTurn
  readonly #beforeRenewal: (() => Promise<void>) | undefined
  readonly #lost = new AbortController()
  readonly #intervalMs: number
  #timer: NodeJS.Timeout | undefined
  #writtenBytes: number
  #running: Promise<void> | undefined
  #isStopped = false

  constructor(
    cache: Cache,
    turn: StageTurn,
    options: {
      readonly signal: AbortSignal
      readonly beforeRenewal?: () => Promise<void>
      readonly together?: number
    },
  ) {
    this.#cache = cache
    this.#turn = turn
    this.#beforeRenewal = options.beforeRenewal
    this.#writtenBytes = turn.copy.writtenBytes
    this.signal = AbortSignal.any([options.signal, this.#lost.signal])
    this.#intervalMs = planRenewal(options.together ?? 1)
    this.#await(this.#intervalMs * Math.random()) // nodes that start together do not all renew at once
  }

  get isLost(): boolean {
    return this.#lost.signal.aborted
  }

  /** Notes the number of bytes on disk, which goes to the record with the next renewal. */
  report(writtenBytes: number): void {
    this.#writtenBytes = writtenBytes
  }

  /** Ends the renewals; resolves when none is under way. */
  async stop(): Promise<void> {
    this.#isStopped = true
    clearTimeout(this.#timer)
    await this.#running
  }

  /** One at a time: while the record is down each takes a minute to give up, and stopping waits for the last. */
  #await(afterMs: number): void {
    if (this.#isStopped) return
    this.#timer = setTimeout(() => {
      this.#running = this.#renew().finally(() => this.#await(this.#intervalMs))
    }, afterMs)
  }

  async #renew(): Promise<void> {
    const nowMs = this.#cache.nowMs()
    const { copy, stageLeaseId } = this.#turn
    const expiresAtMs = nowMs + STAGE_LEASE_MS
    try {
      await this.#beforeRenewal?.()
      const progress = { copyId: copy.copyId, stageLeaseId, writtenBytes: this.#writtenBytes, expiresAtMs }
      if (!(await this.#cache.record.reportProgress(progress, nowMs))) {
        this.#lost.abort('the stage lease was lost')
      }
    } catch {
      // An unreachable record may be back before the lease ends; until then no other stager may take over.
    }
  }
}
