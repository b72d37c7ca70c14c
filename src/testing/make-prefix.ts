import type { Prefix } from '../feed/plan/prefix.js'

/** The prefix with these samples. */
export function makePrefix(sampleCount: number, samples: readonly number[]): Prefix {
  const bits = new Uint32Array(Math.ceil(sampleCount / 32))
  for (const sample of samples) bits[sample >>> 5]! |= 1 << (sample & 31)
  return { bits, size: new Set(samples).size }
}
