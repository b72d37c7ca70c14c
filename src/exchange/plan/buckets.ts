import type { Gradient } from './gradient.js'

/** Consecutive gradients (backward order) exchanged in one call: `from` ≤ index < `to`. */
export interface Bucket {
  readonly from: number
  readonly to: number
  readonly elements: number
}

/**
 * Fills a bucket until it holds at least `capElements`, then starts the next; a gradient is never split.
 * `firstCapElements` applies to the first bucket (PyTorch's DDP makes that one smaller by default).
 */
export function fillBuckets(
  gradients: readonly Gradient[],
  capElements: number,
  firstCapElements = capElements,
): Bucket[] {
  const buckets: Bucket[] = []
  let from = 0
  let elements = 0
  for (const [index, gradient] of gradients.entries()) {
    elements += gradient.elements
    if (elements >= (buckets.length === 0 ? firstCapElements : capElements)) {
      buckets.push({ from, to: index + 1, elements })
      from = index + 1
      elements = 0
    }
  }
  if (from < gradients.length) buckets.push({ from, to: gradients.length, elements })
  return buckets
}

/** One bucket per layer: no fusion beyond a layer's own gradients. */
export function bucketPerLayer(gradients: readonly Gradient[]): Bucket[] {
  const buckets: Bucket[] = []
  let from = 0
  let elements = 0
  for (const [index, gradient] of gradients.entries()) {
    elements += gradient.elements
    if (gradients[index + 1]?.layer !== gradient.layer) {
      buckets.push({ from, to: index + 1, elements })
      from = index + 1
      elements = 0
    }
  }
  return buckets
}
