import { pause } from '../../platform/poll.js'
import type { Cache } from '../cache.js'
import { restoreFree } from '../eviction/restore-free.js'
import { saveNode } from '../save-node.js'
import { applyCleanUp, planCleanUpOf } from './clean-up.js'
import { forgetHistory } from './forget-history.js'
import type { CleanUpAction } from './plan-clean-up.js'

/** Age at which an interrupted download is removed, in ms; until then, its task may come back for it. */
export const ABANDONED_AFTER_MS = 3_600_000

/** How often a service cleans up, in ms: as often as the cron job of a cache without one. */
const INTERVAL_MS = 600_000
/** How often it looks whether others fill the disk, in ms: as often as kubelet, which evicts pods for it. */
const LOOK_MS = 10_000

interface CleanUpOptions {
  readonly abandonedAfterMs: number
  readonly signal: AbortSignal
  /** The user who cleans up, and can take its evictions back; absent: what is evicted is deleted. */
  readonly by?: string | undefined
}

/** Brings record, disk and limits back in line; safe to run beside anything. Returns what it did. */
export async function cleanUpNode(
  cache: Cache,
  { abandonedAfterMs, signal, by }: CleanUpOptions,
): Promise<readonly CleanUpAction[]> {
  await saveNode(cache)
  const done = await applyCleanUp(cache, await planCleanUpOf(cache, { abandonedAfterMs }), { signal, by })
  await forgetHistory(cache.record, cache.nowMs() - cache.historyMs)
  return done
}

/**
 * Cleans up again and again, for the service that owns a cache: its users need no cron job. Between two cleanups it evicts
 * idle copies while others have filled the disk beyond `minFree`. A failure is told, and the next time tries again. Ends
 * between two actions once `stopping` aborts, or when the returned function is called, which resolves when it has ended.
 */
export function keepClean(
  cache: Cache,
  {
    note,
    stopping,
    intervalMs = INTERVAL_MS,
    lookMs = LOOK_MS,
  }: {
    readonly note: (sentence: string) => void
    readonly stopping: AbortSignal
    readonly intervalMs?: number
    readonly lookMs?: number
  },
): () => Promise<void> {
  const ended = new AbortController()
  const signal = AbortSignal.any([ended.signal, stopping])
  const run = async () => {
    let cleanAtMs = performance.now() + intervalMs
    for (;;) {
      await pause(Math.min(lookMs, Math.max(0, cleanAtMs - performance.now())), signal)
      if (signal.aborted) return
      try {
        if (performance.now() < cleanAtMs) await restoreFree(cache)
        else {
          cleanAtMs = performance.now() + intervalMs
          await cleanUpNode(cache, { abandonedAfterMs: ABANDONED_AFTER_MS, signal })
        }
      } catch (error) {
        if (!signal.aborted)
          note(`cannot clean up the cache: ${error instanceof Error ? error.message : String(error)}`)
      }
    }
  }
  const running = run()
  return async () => {
    ended.abort()
    await running
  }
}
