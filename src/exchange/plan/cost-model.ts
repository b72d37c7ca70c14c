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

/**
 * The link over which a ring would cost what int8 costs: every rank sends each other rank its part of the values, and
 * gathers the means around a ring. Two ranks of different hosts share the link of their host, so with several ranks per
 * host it carries more than a ring's bytes.
 */
export function swapLink(link: Link, ranks: number, ranksPerHost: number): Link {
  if (ranks === 1) return link
  const ringBytes = 2 * (ranks - 1)
  const swapBytes = ranksPerHost * (ranks - ranksPerHost) + (ranks - 1)
  return { ...link, bandwidthBytesPerSecond: (link.bandwidthBytesPerSecond * ringBytes) / swapBytes }
}

/** Seconds that one all-reduce of `wireBytes` takes. */
export function callSeconds(cost: CallCost, wireBytes: number): number {
  return cost.callSeconds + cost.secondsPerByte * wireBytes
}
