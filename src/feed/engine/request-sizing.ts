import {
  DEFAULT_REQUEST_BYTES,
  planRequestBytes,
  type RequestCost,
  type RequestTiming,
} from '../plan/request-cost.js'
import { RequestCostMeter } from './request-cost-meter.js'

/**
 * Where k comes from. given: from --k · request: from the given bytes per request · size: from 4 MiB per request, until
 * measured · measured: from the measured cost of requests.
 */
export const K_ORIGINS = ['given', 'request', 'size', 'measured'] as const
type KOrigin = (typeof K_ORIGINS)[number]

/** Number of samples per request. */
export interface RequestSizingOptions {
  /** Samples per request; 'auto' derives it from bytes. */
  readonly k: number | 'auto'
  /** Bytes per request that `auto` aims for; undefined: from the measured cost of requests. */
  readonly requestBytes: number | undefined
  /** Follows the seeds to the letter: asks only on a miss, one request at a time, one sample after the other. */
  readonly isConformance: boolean
}

/** The request size changes only when another one is better by this factor. */
const WORTH_CHANGING = 1.25

/** The size of requests and the reason for it. */
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

  /** Maximum bytes of a request, and the target of k = 'auto'. */
  get bytes(): number {
    return this.#bytes
  }

  /** Measured cost; undefined until enough is known. */
  cost(): RequestCost | undefined {
    return this.#meter.cost()
  }

  add(timing: RequestTiming): void {
    this.#meter.add(timing)
  }

  /**
   * Fits the size to the measurements, at most once per `epoch`, so that samples kept for the next one need not follow
   * every measurement. Returns whether the size changed.
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
