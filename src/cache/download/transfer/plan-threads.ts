const MAX_THREADS = 8
/** What one object costs beside its bytes, in bytes that cost as much. */
const OBJECT_BYTES = 64 * 1024
/** Below this a thread takes longer to start than it saves. */
const WORTH_A_THREAD_BYTES = 16 * 1024 * 1024

/**
 * How many threads transfer what is left to fetch; 0 = the calling one. One per core, 8 at most: that is more than
 * networks carry, and each takes some 10 MiB of memory.
 */
export function planThreads(download: {
  readonly cores: number
  readonly concurrency: number
  readonly files: number
  readonly bytes: number
}): number {
  const { cores, concurrency, files, bytes } = download
  const worth = Math.floor((bytes + files * OBJECT_BYTES) / WORTH_A_THREAD_BYTES)
  return Math.min(MAX_THREADS, cores, concurrency, worth)
}
