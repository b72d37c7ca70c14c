import { type Alternative, fillDefaultBuckets, simulateAlternatives } from './alternatives.js'
import { type Bucket, fillBuckets } from './buckets.js'
import { type Link, ringCallCost } from './cost-model.js'
import { ALPHA_SAFETY } from './fit-link.js'
import { countElements, countLayers, type Gradient } from './gradient.js'
import { openEarly } from './open-early.js'
import { planOptimum } from './optimum.js'
import { simulateBuckets } from './simulate-buckets.js'
import { planThreshold, type Threshold } from './threshold.js'

const MIB = 1024 * 1024

/** The input of the planner. */
export interface ExchangeInput {
  /** In backward order; at least one. */
  readonly gradients: readonly Gradient[]
  /** E: mean seconds of backward. */
  readonly backwardSeconds: number
  readonly ranks: number
  /** As measured: the planner itself overstates α. */
  readonly link: Link
  /** Mean bytes per value on the wire. */
  readonly wireBytes: number
  /** Bytes per value of the gradients in the trainer. */
  readonly gradientBytes: number
  /** Use the dynamic-programming optimum's buckets instead of the threshold's. Default false. */
  readonly useOptimum?: boolean
}

/** Keyword arguments for PyTorch's DistributedDataParallel, which prefers the list if it knows it. */
export interface DdpArguments {
  readonly bucket_cap_mb?: number
  readonly bucket_cap_mb_list?: readonly number[]
  /** Gradients stay in the buckets: DDP does not copy them out again, and the memory is needed once. */
  readonly gradient_as_bucket_view?: true
}

/** The rule that decided a plan's buckets. */
type BucketRule = 'threshold' | 'optimum' | 'DDP'

/** How gradients will be fused, and the predicted cost. */
export interface ExchangePlan {
  readonly threshold: Threshold
  /** `DDP`: its own buckets are predicted to end no later than the threshold's, so they stay. */
  readonly rule: BucketRule
  /** In the order of exchange. */
  readonly buckets: readonly Bucket[]
  readonly alternatives: readonly Alternative[]
  readonly ddp: DdpArguments
}

/** The chosen buckets, and the ones they were chosen from. */
interface PlannedBuckets {
  readonly threshold: Threshold
  readonly rule: BucketRule
  readonly buckets: readonly Bucket[]
  /** θ in values. */
  readonly capElements: number
  /** Of the threshold's size, except for the first. */
  readonly earlyBuckets: readonly Bucket[]
  /** Whether buckets that are all of the threshold's size end no later than DDP's own. */
  readonly isPlainNoWorse: boolean
}

/**
 * The threshold, and buckets of its size except for the first; overstates α, since too large a bucket costs less. Takes
 * DDP's own buckets if they are predicted to end earlier on the link as measured: a plan is never worse.
 */
export function planBuckets(input: ExchangeInput): PlannedBuckets {
  const { gradients, backwardSeconds, ranks, link, wireBytes } = input
  const wire = { bytesPerElement: wireBytes, cost: ringCallCost(link, ranks) }
  const safeLink = { ...link, alphaSeconds: link.alphaSeconds * ALPHA_SAFETY }
  const safeWire = { bytesPerElement: wireBytes, cost: ringCallCost(safeLink, ranks) }
  const threshold = planThreshold({
    ranks,
    layers: countLayers(gradients),
    backwardSeconds,
    wireBytes: countElements(gradients) * wireBytes,
    cost: safeWire.cost,
  })
  const capElements = threshold.bytes / wireBytes
  const finish = (buckets: readonly Bucket[]) => simulateBuckets(gradients, buckets, wire).finishSeconds
  const earlyBuckets = openEarly(gradients, capElements, safeWire)
  const ownBuckets = fillDefaultBuckets(gradients, input.gradientBytes)
  const ownSeconds = finish(ownBuckets)
  const chosen = { threshold, capElements, earlyBuckets, isPlainNoWorse: false }
  if (input.useOptimum) {
    return { ...chosen, rule: 'optimum', buckets: planOptimum(gradients, safeWire) }
  }
  if (ownSeconds < finish(earlyBuckets)) return { ...chosen, rule: 'DDP', buckets: ownBuckets }
  const isPlainNoWorse = finish(fillBuckets(gradients, capElements)) <= ownSeconds
  return { ...chosen, rule: 'threshold', buckets: earlyBuckets, isPlainNoWorse }
}

/** Plans the exchange of one step. Pure: the same input gives the same plan on every rank. */
export function planExchange(input: ExchangeInput): ExchangePlan {
  const { gradients, ranks, link, wireBytes, gradientBytes } = input
  const planned = planBuckets(input)
  const { threshold, rule, buckets, capElements, earlyBuckets } = planned
  return {
    threshold,
    rule,
    buckets,
    alternatives: simulateAlternatives({
      gradients,
      cost: ringCallCost(link, ranks),
      capElements,
      earlyBuckets,
      plannedBuckets: buckets,
      wireBytes,
      gradientBytes,
    }),
    ddp: ranks === 1 ? {} : { ...formatCaps(planned, gradientBytes), gradient_as_bucket_view: true },
  }
}

/**
 * Caps that make DDP cut the planned buckets; none if they are its own. DDP applies the last cap to all further
 * buckets.
 */
function formatCaps({ rule, buckets, capElements, isPlainNoWorse }: PlannedBuckets, gradientBytes: number) {
  if (rule === 'DDP') return {}
  const capMib = Math.round(((capElements * gradientBytes) / MIB) * 1000) / 1000
  const sizesMib = buckets.map(({ elements }) => (elements * gradientBytes) / MIB)
  // A PyTorch that does not know the list gets the threshold alone if that is no worse than its own buckets.
  const plain = isPlainNoWorse || rule === 'optimum' ? { bucket_cap_mb: capMib } : {}
  if (rule === 'optimum') return { ...plain, bucket_cap_mb_list: sizesMib }
  const isFirstEarly = buckets[0]!.elements < capElements && buckets.length > 1
  return isFirstEarly ? { ...plain, bucket_cap_mb_list: [sizesMib[0]!, capMib] } : plain
}
