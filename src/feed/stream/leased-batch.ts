import type { Slot } from './slot.js'

/** Samples of one batch, readable in the arena until the batch is released. */
export interface LeasedBatch {
  readonly epoch: number
  readonly step: number
  readonly slots: readonly Slot[]
  /** Offsets from the start of the arena file, in bytes, one per sample. */
  readonly offsets: readonly number[]
  /** Samples of the batch that no source could deliver; only if the reader asked to skip them. */
  readonly lost: readonly number[]
}
