import {
  DEFAULT_REQUEST_BYTES,
  planRequestBytes,
  type RequestCost,
  type RequestTiming,
} from '../plan/request-cost.js'
import { RequestCostMeter } from './request-cost-meter.js'

/**
 * Where k comes from. given: from --k · request: from the bytes per request that were given ·
 * size: from 4 MiB per request, as long as nothing is measured · measured: from what requests cost.
 */
export const K_ORIGINS = ['given', 'request', 'size', 'measured'] as const
type KOrigin = (typeof K_ORIGINS)[number]

/** How many samples a request asks for. */
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

/** How large requests are, and why. */
export class RequestSizing {
  readonly #meter = new RequestCostMeter()
  readonly #isFixed: boolean
  #from: KOrigin
  #bytes: number
  #fittedEpoch = -1

  constructor({ k, requestBytes, isConformance }: RequestSizingOptions) {
    this.#isFixed = k !== 'auto' || requestBytes !== undefined || isConformance
    this.#from = k !== 'auto' ? 'given' : requestBytes === undefined ? 'size' : 'request'
    this.#bytes = requestBytes ?? DEFAULT_REQUEST_BYTES
  }

  get from(): KOrigin {
    return this.#from
  }

  /** What a request may hold, and k = 'auto' aims for. */
  get bytes(): number {
    return this.#bytes
  }

  /** Measured; undefined until enough is known. */
  cost(): RequestCost | undefined {
    return this.#meter.cost()
  }

  add(timing: RequestTiming): void {
    this.#meter.add(timing)
  }

  /**
   * Fits the size to what is measured, once for each `epoch` at most: what is kept for the next one need not follow
   * every measurement. Returns whether the size is another one now.
   */
  fit(epoch: number): boolean {
    if (this.#isFixed || this.#fittedEpoch >= epoch) return false
    const cost = this.#meter.cost()
    if (!cost) return false
    this.#fittedEpoch = epoch
    this.#from = 'measured'
    const wanted = planRequestBytes(cost)
    if (Math.max(wanted / this.#bytes, this.#bytes / wanted) < WORTH_CHANGING) return false
    this.#bytes = wanted
    return true
  }
}
