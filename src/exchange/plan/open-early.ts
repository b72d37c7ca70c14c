import { type Bucket, fillBuckets } from './buckets.js'
import type { Wire } from './cost-model.js'
import type { Gradient } from './gradient.js'
import { simulateBuckets } from './simulate-buckets.js'

/**
 * Fills buckets up to the threshold, except for the first, which may leave earlier: the channel is idle until then. Of
 * all places where the first can end, it takes the one whose last exchange is predicted to end earliest, or the
 * threshold itself if none is better. The end of the first bucket also shifts all other cuts, and with them the size of
 * the last bucket, which nothing hides.
 */
export function openEarly(gradients: readonly Gradient[], capElements: number, wire: Wire): Bucket[] {
  let best = fillBuckets(gradients, capElements)
  let bestSeconds = simulateBuckets(gradients, best, wire).finishSeconds
  const first = best[0]
  let elements = 0
  for (let index = 0; first && index + 1 < first.to; index++) {
    elements += gradients[index]!.elements
    if (gradients[index + 1]!.layer === gradients[index]!.layer) continue
    const buckets = fillBuckets(gradients, capElements, elements)
    const { finishSeconds } = simulateBuckets(gradients, buckets, wire)
    if (finishSeconds >= bestSeconds) continue
    best = buckets
    bestSeconds = finishSeconds
  }
  return best
}
