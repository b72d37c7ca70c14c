/**
 * Why training waited, or could have been faster:
 * storage: samples were still on their way · arena_full: clients held the memory that they needed · epoch_build: the
 * order of the epoch was being made · client: batches were ready, but the client took none.
 */
export const STALL_CAUSES = ['storage', 'arena_full', 'epoch_build', 'client'] as const
type StallCause = (typeof STALL_CAUSES)[number]

/** Number of waits kept: enough to put ten above the 99th percentile, and 8 KiB for each rank. */
const KEPT_WAITS = 1024

/** Deliveries to one rank, and its waits, in milliseconds. */
export class StreamMeter {
  samplesDelivered = 0
  bytesDelivered = 0
  readonly stallMs: Record<StallCause, number> = { storage: 0, arena_full: 0, epoch_build: 0, client: 0 }
  /** Time from the start of the newest pass to its first batch. */
  firstBatchMs = 0
  /** Time from the request for the newest epoch's first batch to its delivery. */
  epochGapMs = 0
  /** Milliseconds waited since the last `takeCulprits`, by whom the stream waited for. */
  #culpritsMs = new Map<string, number>()
  readonly #waitsMs = new Float64Array(KEPT_WAITS)
  #delivered = 0
  #begunAtMs: number | undefined
  #newestEpoch = -1

  constructor(openedAtMs: number) {
    this.#begunAtMs = openedAtMs
  }

  /** Records the start of a pass. */
  begin(nowMs: number): void {
    this.#begunAtMs = nowMs
  }

  /** Records the delivery of a batch of `epoch`, requested at `askedAtMs`. */
  deliver(epoch: number, askedAtMs: number, nowMs: number): void {
    if (this.#begunAtMs !== undefined) this.firstBatchMs = nowMs - this.#begunAtMs
    this.#begunAtMs = undefined
    this.#waitsMs[this.#delivered % KEPT_WAITS] = nowMs - askedAtMs
    this.#delivered += 1
    if (epoch <= this.#newestEpoch) return
    this.#newestEpoch = epoch
    this.epochGapMs = nowMs - askedAtMs
  }

  /** Records a wait, and for whom: `disk`, `store`, the name of a node, `memory`, `order`. */
  stall(cause: StallCause, culprit: string, waitedMs: number): void {
    this.stallMs[cause] += waitedMs
    if (waitedMs > 0) this.#culpritsMs.set(culprit, (this.#culpritsMs.get(culprit) ?? 0) + waitedMs)
  }

  /** Takes the milliseconds waited since the last call, by whom the stream waited for. */
  takeCulprits(): ReadonlyMap<string, number> {
    const taken = this.#culpritsMs
    this.#culpritsMs = new Map()
    return taken
  }

  /**
   * Quantile of the waits for the newest 1,024 batches, from request to delivery, in ms: the wait that a share
   * `quantile` (0 to 1) of them did not exceed. 0 before the first. It equals the stall that training sees, unless a
   * client asks ahead.
   */
  findWaitMs(quantile: number): number {
    const waits = this.#waitsMs.slice(0, Math.min(this.#delivered, KEPT_WAITS)).sort()
    return waits[Math.min(waits.length - 1, Math.floor(waits.length * quantile))] ?? 0
  }
}
