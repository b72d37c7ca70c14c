const MAX_THREADS = 8
/** What one object costs beside its bytes, in bytes that cost as much. */
const OBJECT_BYTES = 64 * 1024
/** Below this a thread takes longer to start than it saves. */
const WORTH_A_THREAD_BYTES = 16 * 1024 * 1024

/** Objects below this keep the thread busy that hands them out: a core of its own is worth more to it than another thread. */
const SMALL_OBJECT_BYTES = 256 * 1024

/**
 * How many threads transfer what is left to fetch; 0 = the calling one. One per core, 8 at most: that is more than
 * networks carry, and each takes some 10 MiB of memory. Of small objects one less: on two cores 5,000 × 10 KiB take
 * 1.4 instead of 1.7 s of processor time so (scripts/bench/stage.mjs).
 */
export function planThreads(download: {
  readonly cores: number
  readonly concurrency: number
  readonly files: number
  readonly bytes: number
}): number {
  const { cores, concurrency, files, bytes } = download
  const worth = Math.floor((bytes + files * OBJECT_BYTES) / WORTH_A_THREAD_BYTES)
  const free = bytes < files * SMALL_OBJECT_BYTES ? Math.max(1, cores - 1) : cores
  return Math.min(MAX_THREADS, free, concurrency, worth)
}
