import type { Bucket } from './buckets.js'
import { callSeconds, type Wire } from './cost-model.js'
import type { Gradient } from './gradient.js'

/**
 * Finds the buckets whose last exchange ends earliest, by dynamic programming over all ways to cut the backward order
 * into consecutive groups: O(N²) time for N gradients. Exact for the simulated channel; on a real one it is only as
 * good as the ready times, so it is opt-in.
 */
export function planOptimum(gradients: readonly Gradient[], { bytesPerElement, cost }: Wire): Bucket[] {
  const count = gradients.length
  const finish = new Float64Array(count + 1)
  const cut = new Int32Array(count + 1)
  const elementsBefore = new Float64Array(count + 1)
  let ready = 0
  for (let to = 1; to <= count; to++) {
    const gradient = gradients[to - 1] as Gradient
    elementsBefore[to] = (elementsBefore[to - 1] ?? 0) + gradient.elements
    ready = Math.max(ready, gradient.readySeconds)
    finish[to] = Number.POSITIVE_INFINITY
    // An earlier end of the prefix never hurts later buckets, so the best prefix is enough.
    for (let from = to - 1; from >= 0; from--) {
      const bytes = ((elementsBefore[to] ?? 0) - (elementsBefore[from] ?? 0)) * bytesPerElement
      const end = Math.max(finish[from] ?? 0, ready) + callSeconds(cost, bytes)
      if (end < (finish[to] ?? 0)) {
        finish[to] = end
        cut[to] = from
      }
    }
  }
  const buckets: Bucket[] = []
  for (let to = count; to > 0; ) {
    const from = cut[to] ?? 0
    buckets.push({ from, to, elements: (elementsBefore[to] ?? 0) - (elementsBefore[from] ?? 0) })
    to = from
  }
  return buckets.reverse()
}
