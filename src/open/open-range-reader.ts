import type { ManifestEntry } from '../manifest/manifest-entry.js'
import { withRetries } from '../sources/retry.js'
import type { Source } from '../sources/source.js'

/** A store without a byte for so long is not waited for any more, ms. */
const STALL_TIMEOUT_MS = 10_000

/** An object of which ranges are read. */
export type ReadObject = Pick<ManifestEntry, 'key' | 'etag' | 'versionId' | 'sizeBytes'>

/** Reads ranges of objects where they lie. */
export interface RangeReader {
  /** Retries inside. */
  read(object: ReadObject, offset: number, length: number): Promise<Buffer>
  close(): Promise<void>
}

/** Opens a reader of ranges with up to `connections` connections, whose reads end with `signal`. */
export async function openRangeReader(
  source: Source,
  { connections, signal }: { readonly connections: number; readonly signal: AbortSignal },
): Promise<RangeReader> {
  const fetcher = await source.openFetcher({ connections })
  // Closing ends what is asked for: of tens of thousands of requests, a listener of each takes a sixth of the time.
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
