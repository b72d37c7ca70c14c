import type { StatusFilter } from '../../cache/status/status-snapshot.js'
import type { RecordStore } from '../../records/contract/record-store.js'

/** The live screen holds every copy, with its lease some 2 KB, and reads them for seconds. */
const MAX_LIVE_COPIES = 200_000

/** Whether the live screen can hold the matching copies; otherwise a summary serves better. */
export async function fitsLiveScreen(
  record: Pick<RecordStore, 'sumCopies'>,
  filter: StatusFilter,
  nowMs: number,
): Promise<boolean> {
  const sums = await record.sumCopies(filter, nowMs)
  return sums.reduce((total, { copies }) => total + copies, 0) <= MAX_LIVE_COPIES
}
