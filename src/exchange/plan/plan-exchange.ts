import { type Alternative, simulateAlternatives } from './alternatives.js'
import type { Bucket } from './buckets.js'
import { type Link, ringCallCost } from './cost-model.js'
import { ALPHA_SAFETY } from './fit-link.js'
import { countElements, countLayers, type Gradient } from './gradient.js'
import { openEarly } from './opening.js'
import { planOptimum } from './optimum.js'
import { planThreshold, type Threshold } from './threshold.js'

const MIB = 1024 * 1024

/** What an exchange is planned from. */
export interface ExchangeInput {
  /** In backward order; at least one. */
  readonly gradients: readonly Gradient[]
  /** E: mean seconds of backward. */
  readonly backwardSeconds: number
  readonly ranks: number
  /** As measured: the planner overstates α itself. */
  readonly link: Link
  /** Bytes per value on the wire: 2 for fp16, 4 for fp32. */
  readonly wireBytes: 2 | 4
  /** Bytes per value of the gradients as the trainer holds them. */
  readonly gradientBytes: number
  /** Use the dynamic-programming optimum's buckets instead of the threshold's. Default false. */
  readonly useOptimum?: boolean
}

/** Keyword arguments for PyTorch's DistributedDataParallel, which prefers the list where it knows it. */
export interface DdpArguments {
  readonly bucket_cap_mb?: number
  readonly bucket_cap_mb_list?: readonly number[]
  /** Gradients stay in the buckets: DDP does not copy them out again, and the memory is needed once. */
  readonly gradient_as_bucket_view?: true
}

/** How gradients will be fused, and what that is predicted to cost. */
export interface ExchangePlan {
  readonly threshold: Threshold
  /** In the order in which they are exchanged. */
  readonly buckets: readonly Bucket[]
  readonly alternatives: readonly Alternative[]
  readonly ddp: DdpArguments
}

/** The threshold, and buckets of its size but for the first. α is overstated: too large a bucket costs less. */
export function planBuckets({
  gradients,
  backwardSeconds,
  ranks,
  link,
  wireBytes,
}: Omit<ExchangeInput, 'gradientBytes' | 'useOptimum'>) {
  const safeCost = ringCallCost({ ...link, alphaSeconds: link.alphaSeconds * ALPHA_SAFETY }, ranks)
  const threshold = planThreshold({
    ranks,
    layers: countLayers(gradients),
    backwardSeconds,
    wireBytes: countElements(gradients) * wireBytes,
    cost: safeCost,
  })
  const capElements = threshold.bytes / wireBytes
  return {
    safeCost,
    threshold,
    capElements,
    buckets: openEarly(gradients, capElements, wireBytes, safeCost),
  }
}

/** Plans the exchange of one step. Pure: the same input gives the same plan on every rank. */
export function planExchange(input: ExchangeInput): ExchangePlan {
  const { gradients, ranks, link, wireBytes, gradientBytes } = input
  const { safeCost, threshold, capElements, buckets: earlyBuckets } = planBuckets(input)
  const buckets = input.useOptimum ? planOptimum(gradients, wireBytes, safeCost) : earlyBuckets
  const capMib = Math.round(((capElements * gradientBytes) / MIB) * 1000) / 1000
  const sizesMib = buckets.map(({ elements }) => (elements * gradientBytes) / MIB)
  // DDP applies the last cap to all further buckets.
  const listed = input.useOptimum
    ? { bucket_cap_mb_list: sizesMib }
    : buckets[0]!.elements < capElements && buckets.length > 1
      ? { bucket_cap_mb_list: [sizesMib[0]!, capMib] }
      : {}
  return {
    threshold,
    buckets,
    alternatives: simulateAlternatives({
      gradients,
      cost: ringCallCost(link, ranks),
      capElements,
      earlyBuckets,
      wireBytes,
      gradientBytes,
    }),
    ddp:
      ranks === 1
        ? {}
        : {
            bucket_cap_mb: capMib,
            ...listed,
            gradient_as_bucket_view: true,
          },
  }
}
