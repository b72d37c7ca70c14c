/**
 * Why training waited, or could have gone faster:
 * storage: samples were still on their way · arena_full: clients held the memory that they needed ·
 * epoch_build: the order of the epoch was being made · client: batches were ready, and the client took none.
 */
export const STALL_CAUSES = ['storage', 'arena_full', 'epoch_build', 'client'] as const
export type StallCause = (typeof STALL_CAUSES)[number]

/** What one rank has received and how long it waited, in milliseconds. */
export interface StreamMeter {
  samplesDelivered: number
  bytesDelivered: number
  readonly stallMs: Record<StallCause, number>
  /** From the start of the newest pass to its first batch. */
  firstBatchMs: number
  /** What the first batch of the newest epoch took after it was asked for. */
  epochGapMs: number
  /** Says that a pass starts. */
  begin(nowMs: number): void
  /** Says that a batch of `epoch`, asked for at `askedAtMs`, is there. */
  deliver(epoch: number, askedAtMs: number, nowMs: number): void
}

export function createStreamMeter(openedAtMs: number): StreamMeter {
  let begunAtMs: number | undefined = openedAtMs
  let newestEpoch = -1
  return {
    samplesDelivered: 0,
    bytesDelivered: 0,
    stallMs: { storage: 0, arena_full: 0, epoch_build: 0, client: 0 },
    firstBatchMs: 0,
    epochGapMs: 0,
    begin(nowMs) {
      begunAtMs = nowMs
    },
    deliver(epoch, askedAtMs, nowMs) {
      if (begunAtMs !== undefined) this.firstBatchMs = nowMs - begunAtMs
      begunAtMs = undefined
      if (epoch <= newestEpoch) return
      newestEpoch = epoch
      this.epochGapMs = nowMs - askedAtMs
    },
  }
}
