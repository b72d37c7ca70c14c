import { type ArenaBudget, type ArenaBudgetOptions, planArenaBudget, planDepth } from './arena-budget.js'
import { type ExpectedStall, planStall } from './expected-stall.js'
import { findMemoryForRequests } from './memory-for-requests.js'
import { DEFAULT_REQUEST_BYTES, planRequestBytes, type RequestCost } from './request-cost.js'

/** Known facts about a dataset, a feed and its trainers. */
export interface ExpectationOptions extends Omit<ArenaBudgetOptions, 'ranks' | 'requestBytes'> {
  readonly totalBytes: number
  readonly batchSize: number
  /** Number of ranks on this machine, which counts as the whole job. */
  readonly ranks: number
  /** Cost of a request to a node; undefined: unknown, requests aim for 4 MiB. */
  readonly cost: RequestCost | undefined
  /** Time that training takes for a batch, in ms; undefined: nothing is said about waiting. */
  readonly stepMs: number | undefined
  /** Result of a simulation; without it, the laws apply. */
  readonly rehearsal?: Rehearsal | undefined
}

/** Totals of all ranks of a feed in one epoch. */
export interface RehearsedEpoch {
  readonly requests: number
  /** Samples that came from Cache_next. */
  readonly kept: number
}

/** Results for the first epoch of a feed and for the one after it. */
export interface Rehearsal {
  readonly first: RehearsedEpoch
  readonly later: RehearsedEpoch
  /** Present if timing is known. */
  readonly stall?: RehearsedStall | undefined
}

/** How long the trainers waited in the epoch after the first, as a share of the time, 0–1, and why. */
export type RehearsedStall = Pick<ExpectedStall, 'stallShare' | 'cause'>

/** Predicted behavior of a feed. Shares are 0–1, sizes bytes. */
export interface Expectation extends Omit<ArenaBudget, 'bottomBytes'> {
  readonly stepsPerEpoch: number
  /** Whether requests and carryShare come from a simulation instead of the laws. */
  readonly isRehearsed: boolean
  /** By law the sum of ceil(n_M / k) over the nodes. */
  readonly requestsPerEpoch: number
  readonly requestsPerLaterEpoch: number
  readonly windowSamples: number
  readonly memoryBytes: number
  /** Memory with which requests would reach their intended size; null if they do. */
  readonly memoryForRequestsBytes: number | null
  /** Share of the samples that Cache_next holds at the start of an epoch: reads fall by exactly this. */
  readonly carryShare: number
  /** 1 − (1 − carryShare) / k. */
  readonly hitRate: number
  readonly cost: RequestCost | null
  /** Stall in an epoch after the first. */
  readonly stall: ExpectedStall | null
}

/** Applies the laws of both seeds to a dataset and a budget. */
export function planExpectation(options: ExpectationOptions): Expectation {
  const { sampleCount, nodeCount, memoryBytes, cost, stepMs, batchSize, ranks, rehearsal } = options
  const asked = planBudgetOptions(options)
  const memory = planArenaBudget(asked)
  const stepsPerEpoch = Math.floor(sampleCount / (batchSize * ranks))
  const delivered = stepsPerEpoch * batchSize * ranks
  const carryShare = rehearsal
    ? rehearsal.later.kept / delivered
    : Math.min(1, memory.carryBytes / (sampleCount * options.sampleBytes))
  const { k, lowWater } = memory
  const requests = (samples: number) => countRequests(samples, { k: boundK(asked, k), nodeCount })
  const sampleBytes = Math.max(1, options.totalBytes / sampleCount)
  const stall =
    cost && stepMs !== undefined
      ? {
          ...planStall({ stepMs, batchSize, ranks, nodeCount, k, lowWater, sampleBytes, carryShare, cost }),
          ...rehearsal?.stall,
        }
      : null
  return {
    stepsPerEpoch,
    isRehearsed: rehearsal !== undefined,
    k: memory.k,
    lowWater: memory.lowWater,
    requestsPerEpoch: rehearsal?.first.requests ?? requests(delivered),
    requestsPerLaterEpoch: rehearsal?.later.requests ?? requests(Math.round(delivered * (1 - carryShare))),
    windowSamples: nodeCount * (memory.k + memory.lowWater),
    memoryBytes,
    prefetchBytes: memory.prefetchBytes,
    leaseBytes: memory.leaseBytes,
    carryBytes: memory.carryBytes,
    leastBytes: memory.leastBytes,
    isFeasible: memory.isFeasible,
    memoryForRequestsBytes: findMemoryForRequests(asked) ?? null,
    carryShare,
    hitRate: 1 - (1 - carryShare) / memory.k,
    cost: cost ?? null,
    stall,
  }
}

/** Input for dividing the feed's memory, for clients that hold the default number of batches. */
export function planBudgetOptions(options: ExpectationOptions): ArenaBudgetOptions {
  const { memoryBytes, sampleBytes, largestBytes, sampleCount, nodeCount, batchSize, k, cost } = options
  const batchBytes = (options.totalBytes / sampleCount) * batchSize
  const leases = planDepth({ batchBytes, memoryBytes, clients: options.ranks })
  return {
    memoryBytes,
    sampleBytes,
    largestBytes,
    sampleCount,
    nodeCount,
    ranks: Array.from({ length: options.ranks }, () => ({ batchSize, leases })),
    k,
    requestBytes: cost ? planRequestBytes(cost) : DEFAULT_REQUEST_BYTES,
  }
}

/** Samples per request when its bytes are bounded, too. */
function boundK({ requestBytes, largestBytes, sampleBytes }: ArenaBudgetOptions, k: number): number {
  return Math.min(k, Math.max(1, Math.floor(Math.max(requestBytes, largestBytes) / sampleBytes)))
}

function countRequests(samples: number, { k, nodeCount }: { k: number; nodeCount: number }): number {
  const perNode = Math.floor(samples / nodeCount)
  const withOneMore = samples - perNode * nodeCount
  return withOneMore * Math.ceil((perNode + 1) / k) + (nodeCount - withOneMore) * Math.ceil(perNode / k)
}
