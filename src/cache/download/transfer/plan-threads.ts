const MAX_THREADS = 8
/** Cost of one object besides its bytes, in bytes of equal cost. */
const OBJECT_BYTES = 64 * 1024
/** Below this much work a thread takes longer to start than it saves. */
const WORTH_A_THREAD_BYTES = 16 * 1024 * 1024

/**
 * Objects smaller than this keep the thread that hands them out busy; it needs a core more than the transfers need
 * another thread.
 */
const SMALL_OBJECT_BYTES = 256 * 1024

/**
 * Number of threads that transfer the rest; 0 = the calling one. One per core, at most 8: that is more than networks
 * carry, and each takes some 10 MiB of memory. One fewer for small objects: on two cores, 5,000 × 10 KiB then take 1.4
 * instead of 1.7 s of processor time (scripts/bench/stage.mjs).
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
