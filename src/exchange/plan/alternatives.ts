import { type Bucket, bucketPerLayer, fillBuckets } from './buckets.js'
import type { CallCost } from './cost-model.js'
import { countElements, type Gradient } from './gradient.js'
import { planOptimum } from './optimum.js'
import { type SimulatedStep, simulateBuckets, simulateCycles } from './simulate-buckets.js'

const MIB = 1024 * 1024

/** Predicted result of cutting the same gradients in another way. */
export interface Alternative extends SimulatedStep {
  readonly name: string
}

/** DDP's default buckets: of 25 MiB, the first of 1 MiB, in bytes of the gradients' own type. */
export function fillDefaultBuckets(gradients: readonly Gradient[], gradientBytes: number): Bucket[] {
  return fillBuckets(gradients, (25 * MIB) / gradientBytes, MIB / gradientBytes)
}

/**
 * Simulates the common alternatives, the threshold and the exact optimum on the same gradients and link. DDP counts
 * bytes of the gradients' own type (`gradientBytes` per value), all others wire bytes.
 */
export function simulateAlternatives(input: {
  readonly gradients: readonly Gradient[]
  readonly cost: CallCost
  /** The threshold. */
  readonly capElements: number
  /** Of the threshold's size, except for the first. */
  readonly earlyBuckets: readonly Bucket[]
  /** The buckets of the plan. */
  readonly plannedBuckets: readonly Bucket[]
  readonly wireBytes: number
  readonly gradientBytes: number
}): Alternative[] {
  const { gradients, cost, capElements, wireBytes, gradientBytes } = input
  const wire = { bytesPerElement: wireBytes, cost }
  const run = (name: string, buckets: readonly Bucket[]) => ({
    name,
    ...simulateBuckets(gradients, buckets, wire),
  })
  const cycles = (name: string, cycleSeconds: number, limitBytes: number) => ({
    name,
    ...simulateCycles(gradients, { ...wire, cycleSeconds, limitBytes }),
  })
  return [
    run('every tensor', fillBuckets(gradients, 0)),
    run('every layer', bucketPerLayer(gradients)),
    run('one bucket', fillBuckets(gradients, countElements(gradients))),
    run('DDP 25 MiB, first 1 MiB', fillDefaultBuckets(gradients, gradientBytes)),
    cycles('Horovod 64 MiB, 5 ms', 5e-3, 64 * MIB),
    cycles('Horovod 128 MiB, 1 ms', 1e-3, 128 * MIB),
    run('threshold', fillBuckets(gradients, capElements)),
    run('threshold, first early', input.earlyBuckets),
    run('optimum', planOptimum(gradients, wire)),
    run('this plan', input.plannedBuckets),
  ]
}
