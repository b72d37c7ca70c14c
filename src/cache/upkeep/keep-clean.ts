import { pause } from '../../platform/poll.js'
import type { Cache } from '../cache.js'
import { saveNode } from '../save-node.js'
import { applyCleanUp, planCleanUpOf } from './clean-up.js'
import { forgetHistory } from './forget-history.js'
import type { CleanUpAction } from './plan-clean-up.js'

/** Age at which an interrupted download is removed, in ms; until then, its task may come back for it. */
export const ABANDONED_AFTER_MS = 3_600_000

/** How often a service cleans up, in ms: as often as the cron job of a cache without one. */
const INTERVAL_MS = 600_000

interface CleanUpOptions {
  readonly abandonedAfterMs: number
  /** How long events are kept, in ms. */
  readonly historyMs: number
}

/** Brings record, disk and limits back in line; safe to run beside anything. Returns what it did. */
export async function cleanUpNode(
  cache: Cache,
  { abandonedAfterMs, historyMs }: CleanUpOptions,
): Promise<readonly CleanUpAction[]> {
  await saveNode(cache)
  const done = await applyCleanUp(cache, await planCleanUpOf(cache, { abandonedAfterMs }))
  await forgetHistory(cache.record, cache.nowMs() - historyMs)
  return done
}

/**
 * Cleans up again and again, for the service that owns a cache: its users need no cron job. A failure is told, and the
 * next time tries again. Returns what ends it and waits for a cleanup under way.
 */
export function keepClean(
  cache: Cache,
  {
    historyMs,
    note,
    intervalMs = INTERVAL_MS,
  }: {
    readonly historyMs: number
    readonly note: (sentence: string) => void
    readonly intervalMs?: number
  },
): () => Promise<void> {
  const stopping = new AbortController()
  const run = async () => {
    for (;;) {
      await pause(intervalMs, stopping.signal)
      if (stopping.signal.aborted) return
      try {
        await cleanUpNode(cache, { abandonedAfterMs: ABANDONED_AFTER_MS, historyMs })
      } catch (error) {
        note(`cannot clean up the cache: ${error instanceof Error ? error.message : String(error)}`)
      }
    }
  }
  const running = run()
  return async () => {
    stopping.abort()
    await running
  }
}
