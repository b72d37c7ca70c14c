import { planArenaBudget } from './arena-budget.js'
import { type ExpectedStall, planStall } from './expected-stall.js'
import { DEFAULT_REQUEST_BYTES, planRequestBytes, type RequestCost } from './request-cost.js'

interface ExpectationOptions {
  readonly sampleCount: number
  readonly totalBytes: number
  readonly largestBytes: number
  readonly memoryBytes: number
  readonly nodeCount: number
  readonly batchSize: number
  /** Ranks on this machine; the machine is taken to be the whole job. */
  readonly ranks: number
  readonly k: number | 'auto'
  /** What a request to a node costs; undefined: not known, requests aim for 4 MiB. */
  readonly cost: RequestCost | undefined
  /** What training takes for a batch, ms; undefined: nothing is said about waiting. */
  readonly stepMs: number | undefined
}

/** What theory says a feed will do. Shares are 0–1, sizes bytes. */
export interface Expectation {
  readonly stepsPerEpoch: number
  readonly k: number
  readonly lowWater: number
  /** Sum of ceil(n_M / k) over the nodes. */
  readonly requestsPerEpoch: number
  readonly requestsPerLaterEpoch: number
  readonly windowSamples: number
  readonly memoryBytes: number
  readonly prefetchBytes: number
  readonly leaseBytes: number
  readonly carryBytes: number
  readonly leastBytes: number
  readonly isFeasible: boolean
  /** Share of the samples that Cache_next holds at the start of an epoch: reads fall by exactly this. */
  readonly carryShare: number
  /** 1 − (1 − carryShare) / k. */
  readonly hitRate: number
  readonly cost: RequestCost | null
  /** In an epoch after the first. */
  readonly stall: ExpectedStall | null
}

/** Applies the laws of both seeds to a dataset and a budget. */
export function planExpectation(options: ExpectationOptions): Expectation {
  const { sampleCount, nodeCount, memoryBytes, cost, stepMs, batchSize, ranks } = options
  const sampleBytes = Math.max(1, options.totalBytes / sampleCount)
  const memory = planArenaBudget({
    memoryBytes,
    sampleBytes,
    largestBytes: options.largestBytes,
    sampleCount,
    nodeCount,
    ranks: Array.from({ length: ranks }, () => ({ batchSize, leases: 3 })),
    k: options.k,
    requestBytes: cost ? planRequestBytes(cost) : DEFAULT_REQUEST_BYTES,
  })
  const carryShare = Math.min(1, memory.carryBytes / options.totalBytes)
  const requests = (samples: number) => {
    const perNode = Math.floor(samples / nodeCount)
    const withOneMore = samples - perNode * nodeCount
    return (
      withOneMore * Math.ceil((perNode + 1) / memory.k) +
      (nodeCount - withOneMore) * Math.ceil(perNode / memory.k)
    )
  }
  const { k, lowWater } = memory
  const stall =
    cost && stepMs !== undefined
      ? planStall({ stepMs, batchSize, ranks, nodeCount, k, lowWater, sampleBytes, carryShare, cost })
      : null
  return {
    stepsPerEpoch: Math.floor(sampleCount / (batchSize * ranks)),
    k: memory.k,
    lowWater: memory.lowWater,
    requestsPerEpoch: requests(sampleCount),
    requestsPerLaterEpoch: requests(Math.round(sampleCount * (1 - carryShare))),
    windowSamples: nodeCount * (memory.k + memory.lowWater),
    memoryBytes,
    prefetchBytes: memory.prefetchBytes,
    leaseBytes: memory.leaseBytes,
    carryBytes: memory.carryBytes,
    leastBytes: memory.leastBytes,
    isFeasible: memory.isFeasible,
    carryShare,
    hitRate: 1 - (1 - carryShare) / memory.k,
    cost: cost ?? null,
    stall,
  }
}
