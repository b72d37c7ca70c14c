import type { Bucket } from './buckets.js'
import { callSeconds, type Wire } from './cost-model.js'
import type { Gradient } from './gradient.js'

/** Effect of a simulated step on the training loop. */
export interface SimulatedStep {
  /** Seconds after the start of backward at which the last exchange ends. */
  readonly finishSeconds: number
  /** Seconds that the exchange outlasts backward, during which the trainer waits. */
  readonly exposedSeconds: number
  readonly calls: number
}

/**
 * Runs `buckets` over one channel that carries one call at a time, in order. A bucket leaves when its last gradient is
 * ready and the channel is free.
 */
export function simulateBuckets(
  gradients: readonly Gradient[],
  buckets: readonly Bucket[],
  { bytesPerElement, cost }: Wire,
): SimulatedStep {
  let freeSeconds = 0
  for (const { from, to, elements } of buckets) {
    let readySeconds = freeSeconds
    for (let index = from; index < to; index++) {
      readySeconds = Math.max(readySeconds, gradients[index]?.readySeconds ?? 0)
    }
    freeSeconds = readySeconds + callSeconds(cost, elements * bytesPerElement)
  }
  return step(freeSeconds, gradients, buckets.length)
}

/**
 * Runs a coordinator like Horovod's: it wakes every `cycleSeconds` (or when the calls of the last cycle are done),
 * fuses ready gradients into calls of at most `limitBytes` and sends them. Negotiation is free here.
 */
export function simulateCycles(
  gradients: readonly Gradient[],
  options: Wire & { readonly cycleSeconds: number; readonly limitBytes: number },
): SimulatedStep {
  const { cycleSeconds, limitBytes, bytesPerElement, cost } = options
  let nowSeconds = 0
  let next = 0
  let calls = 0
  while (next < gradients.length) {
    const ready = gradients[next]?.readySeconds ?? 0
    const wake = Math.ceil(Math.max(nowSeconds, ready) / cycleSeconds - 1e-9) * cycleSeconds
    nowSeconds = Math.max(nowSeconds, wake)
    let end = next
    while (end < gradients.length && (gradients[end]?.readySeconds ?? 0) <= nowSeconds + 1e-12) end++
    while (next < end) {
      let bytes = 0
      do {
        bytes += (gradients[next]?.elements ?? 0) * bytesPerElement
        next++
      } while (next < end && bytes + (gradients[next]?.elements ?? 0) * bytesPerElement <= limitBytes)
      nowSeconds += callSeconds(cost, bytes)
      calls++
    }
  }
  return step(nowSeconds, gradients, calls)
}

function step(finishSeconds: number, gradients: readonly Gradient[], calls: number): SimulatedStep {
  const backwardSeconds = gradients.reduce((latest, { readySeconds }) => Math.max(latest, readySeconds), 0)
  return { finishSeconds, exposedSeconds: Math.max(0, finishSeconds - backwardSeconds), calls }
}
