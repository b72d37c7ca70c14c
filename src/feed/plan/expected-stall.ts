import type { RequestCost } from './request-cost.js'

export interface StallOptions {
  /** What a trainer takes for a batch while it waits for nothing, ms. */
  readonly stepMs: number
  /** Samples in a batch of one rank, and ranks on this machine. */
  readonly batchSize: number
  readonly ranks: number
  readonly nodeCount: number
  readonly k: number
  readonly lowWater: number
  /** Mean bytes of a sample. */
  readonly sampleBytes: number
  /** Share of the samples that Cache_next gives, 0–1. */
  readonly carryShare: number
  /** Of each node, measured by a feed of one rank. */
  readonly cost: RequestCost
}

/** How long training waits for storage. Shares are of the whole time, 0–1. */
export interface ExpectedStall {
  /** What the trainers ask for and what the nodes can send, bytes per second. */
  readonly demandBytesPerSecond: number
  readonly supplyBytesPerSecond: number
  readonly stallShare: number
  /** What it would be if samples were asked for on a miss only, as seed 000 says. */
  readonly missTriggerStallShare: number
  /** `none`, or what the stall comes from: the nodes' rate, or too little asked for ahead of their answers. */
  readonly cause: 'none' | 'rate' | 'latency'
}

/**
 * Rate: with two requests of k samples on their way a node sends min(B, 2ks / (t0 + ks/B)); what training takes
 * beyond the sum of these it waits for.
 * Latency: a request leaves when `lowWater` samples of its list are left, which last ⌊lowWater / (b/N)⌋ steps, as a
 * batch is taken at once. What the answer, t0 + ks/B, takes longer is waited for once in k / (b/N) steps.
 * On a miss only: 1 − (1 − 1/k)^b of the batches have one and wait t0 + ks/B.
 */
export function planStall(options: StallOptions): ExpectedStall {
  const { stepMs, batchSize, ranks, nodeCount, k, lowWater, sampleBytes, carryShare, cost } = options
  const requestBytes = k * sampleBytes
  const { fixedMs } = cost
  const nodeBytesPerMs = Math.min(
    cost.bytesPerMs,
    (2 * requestBytes) / (fixedMs + requestBytes / cost.bytesPerMs),
  )
  const supplyBytesPerMs = nodeCount * nodeBytesPerMs
  const readPerStep = batchSize * (1 - carryShare)
  const stepBytes = ranks * readPerStep * sampleBytes
  const rateStallMs = Math.max(0, stepBytes / supplyBytesPerMs - stepMs)

  const answerMs = fixedMs + (ranks * requestBytes) / cost.bytesPerMs
  const listPerStep = readPerStep / nodeCount
  const aheadMs = listPerStep > 0 ? Math.floor(lowWater / listPerStep) * stepMs : Number.POSITIVE_INFINITY
  const latencyStallMs = (Math.max(0, answerMs - aheadMs) * listPerStep) / k

  const stallMs = Math.max(rateStallMs, latencyStallMs)
  const missStallMs = (1 - (1 - 1 / k) ** readPerStep) * answerMs
  const shareOf = (ms: number) => ms / (stepMs + ms)
  return {
    demandBytesPerSecond: (1000 * stepBytes) / stepMs,
    supplyBytesPerSecond: 1000 * supplyBytesPerMs,
    stallShare: shareOf(stallMs),
    missTriggerStallShare: shareOf(Math.max(rateStallMs, missStallMs)),
    cause: stallMs === 0 ? 'none' : rateStallMs >= latencyStallMs ? 'rate' : 'latency',
  }
}
