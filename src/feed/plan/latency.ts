/** Recent durations of one node's answers, in milliseconds, and what follows from them. */
export interface LatencyWindow {
  add(durationMs: number): void
  /** The quantile `share` (0–1) of the last 64 durations, or undefined before the first. */
  quantileMs(share: number): number | undefined
}

export function createLatencyWindow(): LatencyWindow {
  const durations: number[] = []
  let next = 0
  return {
    add(durationMs) {
      durations[next++ % 64] = durationMs
    },
    quantileMs(share) {
      if (durations.length === 0) return undefined
      const sorted = durations.toSorted((a, b) => a - b)
      return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))]
    },
  }
}

/** How long a node may send nothing before its connection is given up: four times the slow answers, 1 s at least. */
export function planDeadlineMs(latency: LatencyWindow): number {
  return Math.max(1000, 4 * (latency.quantileMs(0.99) ?? 500))
}

/** When a missed sample is asked for elsewhere as well: twice the slow answers, 20 ms at least. */
export function planHedgeMs(latency: LatencyWindow): number {
  return Math.max(20, 2 * (latency.quantileMs(0.95) ?? 50))
}
