/** How far ahead of its limit a transfer may be before it pauses, in ms. Short pauses cost more than they smooth. */
const BURST_MS = 50

/** State of a bandwidth limit: when all bytes taken so far will be paid for, in ms on the caller's clock. */
interface BandwidthState {
  paidAtMs: number
}

/**
 * Takes `bytes` from the budget and returns how long to wait before taking more, in ms. Unused time is lost: a pause of
 * the source is not followed by a burst.
 */
export function takeBandwidth(
  state: BandwidthState,
  bytes: number,
  options: { readonly bytesPerSecond: number; readonly nowMs: number },
): number {
  const { bytesPerSecond, nowMs } = options
  state.paidAtMs = Math.max(state.paidAtMs, nowMs) + (bytes * 1000) / bytesPerSecond
  const aheadMs = state.paidAtMs - nowMs
  return aheadMs > BURST_MS ? aheadMs : 0
}
