/** Cost of moving bytes between two ranks: a message of n bytes takes `alphaSeconds + n / bandwidth`. */
export interface Link {
  /** Latency of one message, seconds, ≥ 0. */
  readonly alphaSeconds: number
  /** Bytes per second, > 0. */
  readonly bandwidthBytesPerSecond: number
}

/** Cost of one all-reduce of n wire bytes: T(n) = A + c·n. */
export interface CallCost {
  /** A: seconds per call, at any size. */
  readonly callSeconds: number
  /** c: seconds per wire byte. */
  readonly secondsPerByte: number
}

/** A channel, and the type of values on it. */
export interface Wire {
  readonly bytesPerElement: number
  readonly cost: CallCost
}

/**
 * Cost of a ring all-reduce (reduce-scatter, then all-gather) among `ranks` ≥ 1 processes: 2(P−1) messages follow each
 * other, each carries 1/P of the bytes. A single rank exchanges nothing.
 */
export function ringCallCost(link: Link, ranks: number): CallCost {
  const messages = 2 * (ranks - 1)
  return {
    callSeconds: messages * link.alphaSeconds,
    secondsPerByte: messages / (ranks * link.bandwidthBytesPerSecond),
  }
}

/** Seconds that one all-reduce of `wireBytes` takes. */
export function callSeconds(cost: CallCost, wireBytes: number): number {
  return cost.callSeconds + cost.secondsPerByte * wireBytes
}
