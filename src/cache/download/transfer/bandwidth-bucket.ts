import { takeBandwidth } from './plan-bandwidth.js'

/**
 * A bandwidth limit that any number of threads share, in shared memory: the time when all bytes taken so far will be
 * paid for (Unix epoch, µs), and the limit in bytes per second. Both are integers.
 */
export type BandwidthBucket = SharedArrayBuffer

const PAID_AT = 0
const LIMIT = 1

/** Creates a limit that threads share, in bytes per second. */
export function createBandwidthBucket(bytesPerSecond: number): BandwidthBucket {
  const bucket = new SharedArrayBuffer(2 * BigInt64Array.BYTES_PER_ELEMENT)
  changeBandwidth(bucket, bytesPerSecond)
  return bucket
}

/** Changes the limit for every thread. */
export function changeBandwidth(bucket: BandwidthBucket, bytesPerSecond: number): void {
  Atomics.store(new BigInt64Array(bucket), LIMIT, BigInt(Math.max(1, Math.round(bytesPerSecond))))
}

/** Opens the bucket in this thread: the function takes bytes and returns how long to wait before taking more, in ms. */
export function openBandwidthBucket(bucket: BandwidthBucket | undefined): (bytes: number) => number {
  if (bucket === undefined) return () => 0
  const shared = new BigInt64Array(bucket)
  return (bytes) => {
    for (;;) {
      const before = Atomics.load(shared, PAID_AT)
      const state = { paidAtMs: Number(before) / 1000 }
      const nowMs = performance.timeOrigin + performance.now()
      const bytesPerSecond = Number(Atomics.load(shared, LIMIT))
      const waitMs = takeBandwidth(state, bytes, { bytesPerSecond, nowMs })
      const after = BigInt(Math.round(state.paidAtMs * 1000))
      if (Atomics.compareExchange(shared, PAID_AT, before, after) === before) return waitMs
    }
  }
}
