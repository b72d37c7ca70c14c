import type { Slot } from './slot.js'

/** Samples of one batch, readable in the arena until the batch is released. */
export interface LeasedBatch {
  readonly epoch: number
  readonly step: number
  readonly slots: readonly Slot[]
  /** Bytes from the start of the arena file, one per sample. */
  readonly offsets: readonly number[]
  /** Samples of the batch that no source could give; only where the reader said to skip them. */
  readonly lost: readonly number[]
}
