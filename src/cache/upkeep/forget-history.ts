import { setTimeout as sleep } from 'node:timers/promises'
import type { RecordStore } from '../../records/contract/record-store.js'

/** Events forgotten in one transaction, which holds up whoever else writes: among ten million, 0.1 s. */
const BATCH_EVENTS = 1000
/** A call begins no transaction after so long, ms: after years without a cleanup, the next ones go on. */
const MAX_MS = 400
/** Between two transactions those who wait come first, ms. */
const PAUSE_MS = 20

/**
 * Forgets what happened before `beforeMs`, oldest first, a little at a time. Returns how many events that were.
 * `elapsedMs` is a clock that runs evenly.
 */
export async function forgetHistory(
  record: Pick<RecordStore, 'pruneEvents'>,
  beforeMs: number,
  elapsedMs = () => performance.now(),
): Promise<number> {
  const endMs = elapsedMs() + MAX_MS
  let forgotten = 0
  do {
    const pruned = await record.pruneEvents(beforeMs, BATCH_EVENTS)
    forgotten += pruned
    if (pruned < BATCH_EVENTS) break
    await sleep(PAUSE_MS)
  } while (elapsedMs() < endMs)
  return forgotten
}
