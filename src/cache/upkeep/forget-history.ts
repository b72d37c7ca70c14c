import { setTimeout as sleep } from 'node:timers/promises'
import type { RecordStore } from '../../records/contract/record-store.js'

/** Events forgotten in one transaction, which blocks other writers: among ten million, 0.1 s. */
const BATCH_EVENTS = 1000
/** A call starts no transaction after this time, in ms: after years without a cleanup, later calls continue. */
const MAX_MS = 400
/** Pause between transactions to let waiting writers in, in ms. */
const PAUSE_MS = 20

/** Forgets events before `beforeMs`, oldest first, a few at a time. Returns how many. `elapsedMs` is a steady clock. */
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
