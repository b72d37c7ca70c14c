import type { Copy } from '../model/copy.js'
import type { Cache } from './cache.js'

/** A stager that has not renewed for so long may be replaced, even if its process seems alive. */
export const STAGE_LEASE_MS = 120_000

const RENEW_INTERVAL_MS = 1000

/** A stage lease that renews itself and tells when it is lost. */
export interface KeptStageLease {
  /** Aborts when the caller's signal does, or when the lease is lost. */
  readonly signal: AbortSignal
  /** Notes how many bytes are on disk; the record hears of it with the next renewal. */
  readonly report: (writtenBytes: number) => void
  readonly isLost: () => boolean
  /** Ends the renewals; resolves when none is under way. */
  readonly stop: () => Promise<void>
}

/** Renews the stager's lease every second, with its progress, until stopped; `beforeRenewal` comes before each renewal, and after the time that it notes. */
export function keepStageLease(
  cache: Cache,
  turn: { readonly copy: Copy; readonly stageLeaseId: string },
  options: { readonly signal: AbortSignal; readonly beforeRenewal?: () => Promise<void> },
): KeptStageLease {
  const lost = new AbortController()
  let writtenBytes = turn.copy.writtenBytes
  let running: Promise<void> | undefined
  const renew = async () => {
    const nowMs = cache.nowMs()
    const { copy, stageLeaseId } = turn
    try {
      await options.beforeRenewal?.()
      const isKept = await cache.record.reportProgress(
        { copyId: copy.copyId, stageLeaseId, writtenBytes, expiresAtMs: nowMs + STAGE_LEASE_MS },
        nowMs,
      )
      if (!isKept) lost.abort('the stage lease was lost')
    } catch {
      // A record that cannot be reached now may be back before the lease ends; until then nobody may take over.
    }
  }
  // One at a time: while the record is away each takes a minute to give up, and stopping waits for the last.
  const timer = setInterval(() => {
    running ??= renew().finally(() => {
      running = undefined
    })
  }, RENEW_INTERVAL_MS)
  return {
    signal: AbortSignal.any([options.signal, lost.signal]),
    report: (bytes) => {
      writtenBytes = bytes
    },
    isLost: () => lost.signal.aborted,
    stop: async () => {
      clearInterval(timer)
      await running
    },
  }
}
