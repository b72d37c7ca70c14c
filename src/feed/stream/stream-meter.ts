/**
 * Why training waited, or could have gone faster:
 * storage: samples were still on their way · arena_full: clients held the memory that they needed ·
 * epoch_build: the order of the epoch was being made · client: batches were ready, and the client took none.
 */
export const STALL_CAUSES = ['storage', 'arena_full', 'epoch_build', 'client'] as const
type StallCause = (typeof STALL_CAUSES)[number]

/** Enough for a 99th percentile of ten, and 8 KiB for each rank. */
const KEPT_WAITS = 1024

/** What one rank has received and how long it waited, in milliseconds. */
export class StreamMeter {
  samplesDelivered = 0
  bytesDelivered = 0
  readonly stallMs: Record<StallCause, number> = { storage: 0, arena_full: 0, epoch_build: 0, client: 0 }
  /** From the start of the newest pass to its first batch. */
  firstBatchMs = 0
  /** What the first batch of the newest epoch took after it was asked for. */
  epochGapMs = 0
  readonly #waitsMs = new Float64Array(KEPT_WAITS)
  #delivered = 0
  #begunAtMs: number | undefined
  #newestEpoch = -1

  constructor(openedAtMs: number) {
    this.#begunAtMs = openedAtMs
  }

  /** Says that a pass starts. */
  begin(nowMs: number): void {
    this.#begunAtMs = nowMs
  }

  /** Says that a batch of `epoch`, asked for at `askedAtMs`, is there. */
  deliver(epoch: number, askedAtMs: number, nowMs: number): void {
    if (this.#begunAtMs !== undefined) this.firstBatchMs = nowMs - this.#begunAtMs
    this.#begunAtMs = undefined
    this.#waitsMs[this.#delivered % KEPT_WAITS] = nowMs - askedAtMs
    this.#delivered += 1
    if (epoch <= this.#newestEpoch) return
    this.#newestEpoch = epoch
    this.epochGapMs = nowMs - askedAtMs
  }

  /**
   * How long the newest 1,024 batches were waited for after they were asked for, ms: the wait that `quantile` (0 to 1)
   * of them did not exceed. 0 before the first. It is the stall that training sees, unless a client asks ahead.
   */
  findWaitMs(quantile: number): number {
    const waits = this.#waitsMs.slice(0, Math.min(this.#delivered, KEPT_WAITS)).sort()
    return waits[Math.min(waits.length - 1, Math.floor(waits.length * quantile))] ?? 0
  }
}
