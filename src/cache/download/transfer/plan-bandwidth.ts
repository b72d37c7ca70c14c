/** How far ahead of its limit a transfer may be before it pauses, ms. Short pauses cost more than they smooth. */
const BURST_MS = 50

/** What a bandwidth limit remembers: when all bytes taken so far will be paid for, ms on the caller's clock. */
interface BandwidthState {
  paidAtMs: number
}

/**
 * Takes `bytes` from the budget and says how long to wait before taking more, ms. Time that passes unused is lost:
 * a pause of the source is not followed by a burst.
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
