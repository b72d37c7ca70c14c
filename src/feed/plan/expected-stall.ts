import type { RequestCost } from './request-cost.js'

/** How fast the trainer takes batches, and how fast the nodes answer. */
export interface StallOptions {
  /** Time that a trainer takes for a batch without waiting, in ms. */
  readonly stepMs: number
  /** Samples in a batch of one rank, and ranks on this machine. */
  readonly batchSize: number
  readonly ranks: number
  readonly nodeCount: number
  readonly k: number
  readonly lowWater: number
  /** Mean size of a sample, in bytes. */
  readonly sampleBytes: number
  /** Share of the samples that come from Cache_next, 0–1. */
  readonly carryShare: number
  /** Cost for each node, measured by a feed of one rank. */
  readonly cost: RequestCost
}

/** How long training waits for storage. Shares are of the whole time, 0–1. */
export interface ExpectedStall {
  /** Rate that the trainers ask for and rate that the nodes can send, in bytes per second. */
  readonly demandBytesPerSecond: number
  readonly supplyBytesPerSecond: number
  readonly stallShare: number
  /** Stall if samples were requested on a miss only, as seed 000 says. */
  readonly missTriggerStallShare: number
  /** `none`, or the cause of the stall: the nodes' rate, or too few requests ahead of their answers. */
  readonly cause: 'none' | 'rate' | 'latency'
}

/**
 * A request of k samples is answered after a = t0 + ks/B, and used up in u = k / (b/N) steps. c = 1 + lowWater/k
 * requests of a list are in that round at a time, with the low-water mark counted in whole batches, because a batch is
 * taken at once; at most two are in flight. So k samples take the longest of u, (a + u)/c, a/2 and ks/B, and the time
 * beyond u is waiting. An epoch begins with samples from Cache_next, for which nothing waits; the rest follows at its
 * own pace. On a miss only, 1 − (1 − 1/k)^b of the batches that are read wait for an answer.
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

  /** Share of the whole epoch, if each read step waits this long. */
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
