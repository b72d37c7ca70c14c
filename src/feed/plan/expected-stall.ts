import type { RequestCost } from './request-cost.js'

/** How fast the trainer takes batches, and how fast the nodes answer. */
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
 * A request of k samples is answered after a = t0 + ks/B, and used up in u = k / (b/N) steps. c = 1 + lowWater/k
 * requests of a list are in that round at a time, a low-water mark counted in whole batches, for a batch is taken at
 * once; two at most are on their way. So k samples take the longest of u, (a + u)/c, a/2 and ks/B, and what is beyond
 * u is waiting. An epoch begins with what Cache_next gives, for which nothing waits; the rest comes after it, at its own
 * pace. On a miss only, 1 − (1 − 1/k)^b of the batches that are read wait for an answer.
 */
export function planStall(options: StallOptions): ExpectedStall {
  const { stepMs, batchSize, ranks, nodeCount, k, lowWater, sampleBytes, carryShare, cost } = options
  const readShare = 1 - carryShare
  const listPerStep = batchSize / nodeCount
  const sendMs = (ranks * k * sampleBytes) / cost.bytesPerMs
  const answerMs = cost.fixedMs + sendMs
  const useMs = (k / listPerStep) * stepMs
  const rounds = 1 + (Math.floor(lowWater / listPerStep) * listPerStep) / k
  const rateMs = Math.max(sendMs, answerMs / 2)
  const latencyMs = (answerMs + useMs) / rounds
  const cycleMs = Math.max(useMs, rateMs, latencyMs)

  /** Of the whole epoch, when a step that is read waits for so long. */
  const shareOf = (waitMs: number) => (readShare * waitMs) / (stepMs + readShare * waitMs)
  const stallShare = shareOf((cycleMs / useMs - 1) * stepMs)
  const missMs = (1 - (1 - 1 / k) ** batchSize) * answerMs
  return {
    demandBytesPerSecond: (1000 * ranks * batchSize * readShare * sampleBytes) / stepMs,
    supplyBytesPerSecond: (1000 * nodeCount * ranks * k * sampleBytes) / rateMs,
    stallShare,
    missTriggerStallShare: shareOf(Math.max((Math.max(useMs, rateMs) / useMs - 1) * stepMs, missMs)),
    cause: stallShare === 0 ? 'none' : rateMs >= latencyMs ? 'rate' : 'latency',
  }
}
