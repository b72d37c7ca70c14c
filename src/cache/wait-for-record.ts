import { isDscError } from '../failure/dsc-error.js'
import { LOOK_MS, pause } from '../platform/poll.js'
import type { Cache } from './cache.js'

/**
 * Opens the cache once its record can be reached: a server started while the record is down begins its work when it is
 * back. Calls `onAway` each time the record is unreachable. Rejects with any other failure, and when aborted.
 */
export async function waitForRecord(
  openCache: () => Promise<Cache>,
  options: { readonly onAway: (sentence: string) => void; readonly signal?: AbortSignal | undefined },
): Promise<Cache> {
  const { onAway, signal } = options
  for (;;) {
    try {
      return await openCache()
    } catch (error) {
      if (!isDscError(error, 'RECORD_UNAVAILABLE') || signal?.aborted) throw error
      onAway(`${error.message}; waiting for it`)
    }
    await pause(LOOK_MS.database, signal)
  }
}
