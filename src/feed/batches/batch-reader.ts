import type { FeedIdentity } from '../plan/feed-state.js'

/** One sample of a batch. `data` is a copy of its own. */
export interface FeedItem {
  readonly id: number
  readonly name: string
  readonly data: Buffer
  /** Whether it only fills up the last batch. */
  readonly isPadded: boolean
}

/** A batch, and the samples that no source could give and that it came without. */
export interface ReadBatch {
  readonly items: readonly FeedItem[]
  readonly lost: readonly number[]
}

/** The batches of one rank, out of a feed of this process or of another one. */
export interface BatchReader {
  readonly identity: FeedIdentity
  /** Batches of all ranks in an epoch. */
  readonly stepsPerEpoch: number
  /** Batches of this rank in an epoch. */
  readonly batchesPerEpoch: number
  /** Samples in a batch of all ranks. */
  readonly globalBatch: number
  /** Begins a pass; what the one before had asked for is given back. */
  start(epoch: number, step: number): Promise<void>
  /** The batch at `step`, right behind the one that was read last. Rejects with FEED_GONE when the feed is dead or silent. */
  read(epoch: number, step: number): Promise<ReadBatch>
  close(): Promise<void>
}
