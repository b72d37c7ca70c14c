import { setTimeout as sleep } from 'node:timers/promises'
import type { RecordStore } from '../../records/record-store.js'

/** Events forgotten in one transaction, which holds up whoever else writes. */
const BATCH_EVENTS = 5000
/** Events forgotten in one call: after years without a cleanup, the next ones go on. */
const MAX_EVENTS = 100_000
/** Between two transactions those who wait come first, ms. */
const PAUSE_MS = 20

/** Forgets what happened before `beforeMs`, oldest first, a little at a time. Returns how many events that were. */
export async function forgetHistory(
  record: Pick<RecordStore, 'pruneEvents'>,
  beforeMs: number,
): Promise<number> {
  let forgotten = 0
  while (forgotten < MAX_EVENTS) {
    const pruned = await record.pruneEvents(beforeMs, BATCH_EVENTS)
    forgotten += pruned
    if (pruned < BATCH_EVENTS) break
    await sleep(PAUSE_MS)
  }
  return forgotten
}
