import type { RequestCost } from './request-cost.js'

/** Requests that a staging has under way, unless it is told otherwise. */
const CONNECTIONS = 64

interface ColdStartOptions {
  readonly sampleCount: number
  readonly totalBytes: number
  /** Samples in a batch of all ranks of this machine, which is taken to be the whole job. */
  readonly globalBatch: number
  /** What listing the source takes, ms. */
  readonly listMs: number
  /** What an object of the store takes, and what the link carries. */
  readonly cost: RequestCost
  /** What training takes for a batch, ms; undefined: nothing is said about waiting. */
  readonly stepMs: number | undefined
  /** Whether every sample has its own object: else the feed waits for the whole copy. */
  readonly isFedWhileArriving: boolean
}

/** How the first epoch of a dataset that is not here goes, ms from the start. */
export interface ColdStart {
  readonly firstBatchMs: number
  readonly wholeMs: number
  /** End of the first epoch, and how much of it training waits for data. */
  readonly epochMs: number | null
  readonly waitMs: number | null
}

/** Says when the first batch, the first epoch and the whole copy are there, when samples are fetched in order of need. */
export function planColdStart(options: ColdStartOptions): ColdStart {
  const { sampleCount, totalBytes, globalBatch, listMs, cost, stepMs } = options
  const sampleMs = Math.max(cost.fixedMs / CONNECTIONS, totalBytes / sampleCount / cost.bytesPerMs)
  const fetchMs = (samples: number) => cost.fixedMs + samples * sampleMs
  const wholeMs = listMs + fetchMs(sampleCount)
  const isOrdered = options.isFedWhileArriving
  const firstBatchMs = isOrdered ? listMs + fetchMs(Math.min(globalBatch, sampleCount)) : wholeMs
  const steps = Math.floor(sampleCount / globalBatch)
  if (stepMs === undefined || steps === 0) return { firstBatchMs, wholeMs, epochMs: null, waitMs: null }
  const paceMs = isOrdered ? Math.max(stepMs, globalBatch * sampleMs) : stepMs
  const epochMs = firstBatchMs + (steps - 1) * paceMs + stepMs
  return { firstBatchMs, wholeMs, epochMs, waitMs: epochMs - steps * stepMs }
}
