import type { FeedIdentity } from '../plan/feed-state.js'
import type { TrainerTime } from './trainer-time.js'

/** One sample of a batch. `data` is a private copy. */
export interface FeedItem {
  readonly id: number
  readonly name: string
  readonly data: Buffer
  /** Whether it only pads the last batch. */
  readonly isPadded: boolean
}

/** A batch, and the samples it lacks because no source could deliver them. */
export interface ReadBatch {
  readonly items: readonly FeedItem[]
  readonly lost: readonly number[]
}

/** The batches of one rank, from a feed in this process or in another one. */
export interface BatchReader {
  readonly identity: FeedIdentity
  /** Number of batches of all ranks in an epoch. */
  readonly stepsPerEpoch: number
  /** Number of batches of this rank in an epoch. */
  readonly batchesPerEpoch: number
  /** Number of samples in a batch of all ranks. */
  readonly globalBatch: number
  /** Begins a pass; releases everything the previous one asked for. */
  start(epoch: number, step: number): Promise<void>
  /**
   * Returns the batch at `step`, right after the last one read. Rejects with FEED_GONE when the feed is dead or silent.
   */
  read(epoch: number, step: number): Promise<ReadBatch>
  /** Tells how the program that reads has spent its time, without its rank. */
  tell(time: Omit<TrainerTime, 'rank'>): void
  close(): Promise<void>
}
