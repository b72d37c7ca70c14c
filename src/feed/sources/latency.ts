/** Recent durations of one node's answers, in milliseconds, and what follows from them. */
export class LatencyWindow {
  readonly #durations: number[] = []
  #next = 0

  add(durationMs: number): void {
    this.#durations[this.#next++ % 64] = durationMs
  }

  /** How long a node may send nothing before its connection is given up: four times the slow answers, 1 s at least. */
  get deadlineMs(): number {
    return Math.max(1000, 4 * (this.#quantileMs(0.99) ?? 500))
  }

  /** When a missed sample is asked for elsewhere as well: twice the slow answers, 20 ms at least. */
  get hedgeMs(): number {
    return Math.max(20, 2 * (this.#quantileMs(0.95) ?? 50))
  }

  /** The quantile `share` (0–1) of the last 64 durations, or undefined before the first. */
  #quantileMs(share: number): number | undefined {
    if (this.#durations.length === 0) return undefined
    const sorted = this.#durations.toSorted((a, b) => a - b)
    return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))]
  }
}
