import type { ManifestEntry } from '../manifest/manifest-entry.js'
import { withRetries } from '../sources/retry.js'
import type { Source } from '../sources/source.js'

/** How long to wait for a source that sends no bytes, in ms. */
const STALL_TIMEOUT_MS = 10_000

/** An object whose ranges are read. */
export type ReadObject = Pick<ManifestEntry, 'key' | 'etag' | 'versionId' | 'sizeBytes'>

/** Reads ranges of objects at their source. */
export interface RangeReader {
  /** Includes retries. */
  read(object: ReadObject, offset: number, length: number): Promise<Buffer>
  close(): Promise<void>
}

/** Opens a reader of ranges with up to `connections` connections; `signal` ends its reads. */
export async function openRangeReader(
  source: Source,
  { connections, signal }: { readonly connections: number; readonly signal: AbortSignal },
): Promise<RangeReader> {
  const fetcher = await source.openFetcher({ connections })
  // Closing ends all requests: with tens of thousands of them, a listener for each would take a sixth of the time.
  signal.addEventListener('abort', () => void fetcher.close(), { once: true })
  const fetchRange = async (
    { key, etag, versionId, sizeBytes }: ReadObject,
    offset: number,
    length: number,
  ) => {
    const bytes = Buffer.allocUnsafe(length)
    let end = 0
    const sink = (chunk: Uint8Array) => {
      bytes.set(chunk, end)
      end += chunk.length
      return 0
    }
    const stallTimeoutMs = STALL_TIMEOUT_MS
    await fetcher.fetch({ key, etag, versionId, sizeBytes, offset, length, stallTimeoutMs, sink })
    return bytes
  }
  return {
    read: (object, offset, length) => withRetries(() => fetchRange(object, offset, length), { signal }),
    close: () => fetcher.close(),
  }
}
