import type { PlacedSlot } from './parameter-layout.js'

/** Sums gradients in rank order, in float32, and for the `mean` divides by their number. */
export function reduceGradients(gradients: readonly Float32Array[], to: 'sum' | 'mean'): Float32Array {
  const sum = gradients[0]!.slice()
  for (const gradient of gradients.slice(1)) addTo(sum, gradient)
  if (to === 'mean' && gradients.length > 1)
    for (let at = 0; at < sum.length; at++) sum[at]! /= gradients.length
  return sum
}

/** A separate loop, so that it is compiled for two float32 arrays only. */
function addTo(sum: Float32Array, gradient: Float32Array): void {
  for (let at = 0; at < sum.length; at++) sum[at] = sum[at]! + gradient[at]!
}

/** Multiplies everything but buffers by `factor`, in place, and returns all values. */
export function scaleTrained(
  values: Float32Array,
  slots: readonly PlacedSlot[],
  factor: number,
): Float32Array {
  if (factor === 1) return values
  for (const { kind, offset, length } of slots) {
    if (kind === 'buffer') continue
    for (let at = offset; at < offset + length; at++) values[at]! *= factor
  }
  return values
}

/** Divides buffers that were summed over `count` ranks, in place. */
export function averageBuffers(values: Float32Array, slots: readonly PlacedSlot[], count: number): void {
  for (const { kind, offset, length } of slots) {
    if (kind !== 'buffer') continue
    for (let at = offset; at < offset + length; at++) values[at]! /= count
  }
}

/**
 * Scales `gradient` in place so that its norm over `slots` is at most `maxNorm`, with the arithmetic of
 * torch.nn.utils.clip_grad_norm_ but for the sum of squares, which is taken in float64. Returns the norm it had.
 */
export function clipGradient(gradient: Float32Array, slots: readonly PlacedSlot[], maxNorm: number): number {
  let squares = 0
  for (const { offset, length } of slots)
    for (let at = offset; at < offset + length; at++) squares += gradient[at]! * gradient[at]!
  const norm = Math.fround(Math.sqrt(squares))
  const inverse = Math.fround(1 / Math.fround(norm + Math.fround(1e-6)))
  const factor = Math.min(1, Math.fround(inverse * Math.fround(maxNorm)))
  if (factor < 1)
    for (const { offset, length } of slots)
      for (let at = offset; at < offset + length; at++) gradient[at]! *= factor
  return norm
}
