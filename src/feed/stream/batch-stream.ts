import type { RankSequence } from '../plan/rank-sequence.js'
import type { LeasedBatch } from './leased-batch.js'
import type { StreamMeter } from './stream-meter.js'
import type { StreamCounts } from './stream-plan.js'

/** What becomes of a batch with a sample that no source could give: it fails, or comes without that sample. */
export type LossRule = 'raise' | 'skip'

/** The batches of one rank, wherever their samples lie. */
export interface BatchStream {
  readonly sequence: RankSequence
  readonly meter: StreamMeter
  readonly counts: Readonly<StreamCounts>
  /** Whether batches are on their way back to the arena. */
  readonly isGivingBack: boolean
  /** Whole batches that could be taken at once. */
  countReadyBatches(): number
  /** Says where the next client begins, so that reading runs ahead of it. */
  start(epoch: number, step: number): Promise<void>
  /**
   * The batch at `step`; waits until all of its samples are there. A sample that no source could give makes it reject,
   * or, with 'skip', is left out: the batch is shorter then, and rejects only when nothing is left.
   */
  read(epoch: number, step: number, onLoss?: LossRule): Promise<LeasedBatch>
  /** A client is done with a batch. */
  release(batch: LeasedBatch): void
  /** Any samples, by id, outside of the order (map-style access). */
  pick(samples: readonly number[]): Promise<LeasedBatch>
  /** The ids of `count` batches from `step` on, one after the other. */
  idsOf(epoch: number, step: number, count: number): Promise<number[]>
  /** Tries again what had no room. */
  wake(): void
  close(): void
}
