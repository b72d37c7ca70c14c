import {
  createRequestCostMeter,
  DEFAULT_REQUEST_BYTES,
  planRequestBytes,
  type RequestCost,
  type RequestTiming,
} from './request-cost.js'

/**
 * Where k comes from. given: from --k · request: from the bytes per request that were given ·
 * size: from 4 MiB per request, as long as nothing is measured · measured: from what requests cost.
 */
export const K_ORIGINS = ['given', 'request', 'size', 'measured'] as const
export type KOrigin = (typeof K_ORIGINS)[number]

/** How large requests are, and why. */
export interface RequestSizing {
  readonly from: KOrigin
  /** What a request may hold, and k = 'auto' aims for. */
  readonly bytes: number
  /** Measured; undefined until enough is known. */
  cost(): RequestCost | undefined
  add(timing: RequestTiming): void
  /**
   * Fits the size to what is measured, once for each `epoch` at most: what is kept for the next one need not follow
   * every measurement. Returns whether the size is another one now.
   */
  fit(epoch: number): boolean
}

export interface RequestSizingOptions {
  /** Samples per request; 'auto' by bytes. */
  readonly k: number | 'auto'
  /** Bytes per request that `auto` aims for; undefined: by what requests are measured to cost. */
  readonly requestBytes: number | undefined
  /** The seeds to the letter: asks on a miss only, one request at a time, one sample after the other. */
  readonly isConformance: boolean
}

/** Requests change in size when another one is better by this factor. */
const WORTH_CHANGING = 1.25

export function createRequestSizing({ k, requestBytes, isConformance }: RequestSizingOptions): RequestSizing {
  const meter = createRequestCostMeter()
  const isFixed = k !== 'auto' || requestBytes !== undefined || isConformance
  let from: KOrigin = k !== 'auto' ? 'given' : requestBytes === undefined ? 'size' : 'request'
  let bytes = requestBytes ?? DEFAULT_REQUEST_BYTES
  let fittedEpoch = -1
  return {
    get from() {
      return from
    },
    get bytes() {
      return bytes
    },
    cost: meter.cost,
    add: meter.add,
    fit(epoch) {
      if (isFixed || fittedEpoch >= epoch) return false
      const cost = meter.cost()
      if (!cost) return false
      fittedEpoch = epoch
      from = 'measured'
      const wanted = planRequestBytes(cost)
      if (Math.max(wanted / bytes, bytes / wanted) < WORTH_CHANGING) return false
      bytes = wanted
      return true
    },
  }
}
