import { type Bucket, bucketPerLayer, fillBuckets } from './buckets.js'
import type { CallCost } from './cost-model.js'
import { countElements, type Gradient } from './gradient.js'
import { planOptimum } from './optimum.js'
import { type SimulatedStep, simulateBuckets, simulateCycles } from './simulate.js'

const MIB = 1024 * 1024

/** What another way of cutting the same gradients would expose. */
export interface Alternative extends SimulatedStep {
  readonly name: string
}

/**
 * Simulates what people use instead, the threshold and the exact optimum on the same gradients and link.
 * DDP counts bytes of the gradients' own type (`gradientBytes` per value), everybody else wire bytes.
 */
export function simulateAlternatives(input: {
  readonly gradients: readonly Gradient[]
  readonly cost: CallCost
  /** The threshold. */
  readonly capElements: number
  /** Of the threshold's size, but for the first. */
  readonly earlyBuckets: readonly Bucket[]
  readonly wireBytes: 2 | 4
  readonly gradientBytes: number
}): Alternative[] {
  const { gradients, cost, capElements, earlyBuckets, wireBytes, gradientBytes } = input
  const run = (name: string, buckets: readonly Bucket[]) => ({
    name,
    ...simulateBuckets(gradients, buckets, wireBytes, cost),
  })
  const cycles = (name: string, cycleSeconds: number, limitBytes: number) => ({
    name,
    ...simulateCycles(gradients, { cycleSeconds, limitBytes, bytesPerElement: wireBytes, cost }),
  })
  return [
    run('every tensor', fillBuckets(gradients, 0)),
    run('every layer', bucketPerLayer(gradients)),
    run('one bucket', fillBuckets(gradients, countElements(gradients))),
    run('DDP 25 MiB, first 1 MiB', fillBuckets(gradients, (25 * MIB) / gradientBytes, MIB / gradientBytes)),
    cycles('Horovod 64 MiB, 5 ms', 5e-3, 64 * MIB),
    cycles('Horovod 128 MiB, 1 ms', 1e-3, 128 * MIB),
    run('threshold', fillBuckets(gradients, capElements)),
    run('threshold, first early', earlyBuckets),
    run('optimum', planOptimum(gradients, wireBytes, cost)),
  ]
}
