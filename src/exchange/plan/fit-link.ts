import type { Link } from './cost-model.js'

/** Measured one-way times of one message size. */
export interface LinkProbe {
  readonly bytes: number
  /** One-way seconds of each repetition; at least one. */
  readonly seconds: readonly number[]
}

/** Safety factor for α before planning: half of the true α costs 15 %, twice costs 0.3 % (simulated). */
export const ALPHA_SAFETY = 1.5

/**
 * Messages up to `SMALL_BYTES` measure latency; those above `LARGE_BYTES`, which no queue on the way can hide,
 * bandwidth.
 */
const SMALL_BYTES = 4 * 1024
const LARGE_BYTES = 64 * 1024

/**
 * Fits α and B to probes. B is the median slope between pairs of large sizes (times grow with bytes,
 * so one slow size cannot tilt it); α is the median of what remains of the small sizes.
 * Needs at least one size up to 4 KiB and two above 64 KiB; throws RangeError otherwise.
 */
export function fitLink(probes: readonly LinkProbe[]): Link {
  const points = probes.map(({ bytes, seconds }) => ({ bytes, seconds: median(seconds) }))
  const large = points.filter(({ bytes }) => bytes > LARGE_BYTES)
  const small = points.filter(({ bytes }) => bytes <= SMALL_BYTES)
  if (large.length < 2 || small.length < 1) {
    throw new RangeError('a fit needs one size up to 4 KiB and two above 64 KiB')
  }
  const slopes: number[] = []
  for (const [index, a] of large.entries()) {
    for (const b of large.slice(index + 1)) {
      if (a.bytes !== b.bytes) slopes.push((b.seconds - a.seconds) / (b.bytes - a.bytes))
    }
  }
  const largest = large.reduce((a, b) => (b.bytes > a.bytes ? b : a))
  const slope = median(slopes)
  const secondsPerByte = slope > 0 ? slope : largest.seconds / largest.bytes
  const remains = small.map(({ bytes, seconds }) => Math.max(0, seconds - bytes * secondsPerByte))
  return { alphaSeconds: median(remains), bandwidthBytesPerSecond: 1 / secondsPerByte }
}

/** Middle value; the mean of the two middle ones for an even count. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  const middle = sorted.length >> 1
  const upper = sorted[middle] ?? Number.NaN
  return sorted.length % 2 === 1 ? upper : (upper + (sorted[middle - 1] ?? Number.NaN)) / 2
}
