import type { RankSequence } from '../plan/rank-sequence.js'
import type { LeasedBatch } from './leased-batch.js'
import type { StreamMeter } from './stream-meter.js'
import type { StreamCounts } from './stream-plan.js'

/** Rule for a batch if no source can deliver one of its samples: fail, or leave the sample out. */
export type LossRule = 'raise' | 'skip'

/** The batches of one rank, wherever their samples lie. */
export interface BatchStream {
  readonly sequence: RankSequence
  readonly meter: StreamMeter
  readonly counts: Readonly<StreamCounts>
  /** Whether batches are on their way back to the arena. */
  readonly isGivingBack: boolean
  /** Number of complete batches that could be taken at once. */
  countReadyBatches(): number
  /** Sets where the next client begins, so that reading runs ahead of it. */
  start(epoch: number, step: number): Promise<void>
  /**
   * Returns the batch at `step`, after waiting for all of its samples. If no source can deliver a sample, it rejects
   * or, with 'skip', leaves the sample out: the batch is then shorter, and rejects only if it would be empty.
   */
  read(epoch: number, step: number, onLoss?: LossRule): Promise<LeasedBatch>
  /** Releases a batch that a client is done with. */
  release(batch: LeasedBatch): void
  /** Reads any samples by id, outside of the order (map-style access). */
  pick(samples: readonly number[]): Promise<LeasedBatch>
  /** Returns the ids of `count` batches from `step` on, in order. */
  idsOf(epoch: number, step: number, count: number): Promise<number[]>
  /** Retries everything that had no room. */
  wake(): void
  close(): void
}
