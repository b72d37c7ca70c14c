import type { BytePath } from '../byte-path.js'
import type { RowsKept } from './rows-paths.js'

/** Which columns of rows are fed, and where they are unpacked. */
export interface RowsOptions {
  /** Of each row, in this order; undefined: all. */
  readonly columns?: readonly string[] | undefined
  /** How rows come into memory. */
  readonly reading: RowsReading
  /**
   * Finds the place for the rows of the files below `root`, an absolute path without links; `what` tells them from
   * others of the same files: their columns.
   */
  readonly openPlace: (
    root: BytePath,
    what: readonly string[] | undefined,
    kept: RowsKept,
  ) => Promise<RowsPlace>
}

/**
 * `unpacked`: from where they lie side by side · `groups`: row group by row group, so many in memory at a time ·
 * `either`: unpacked, or, where there is no room for that, in as many groups as memory wants.
 */
export type RowsReading =
  | { readonly kind: 'unpacked' | 'either' }
  | { readonly kind: 'groups'; readonly window: number }

/** A folder for rows that are unpacked. */
export interface RowsPlace {
  /** Where they are written: perhaps the path of a descriptor. */
  readonly writePath: string
  /** Where they are read, absolute. */
  readonly readPath: string
  /** Asked before about so many bytes are written; rejects where there is no room for them. */
  readonly makeRoom: (bytes: number) => Promise<void>
  /** What was written is on the disk. */
  readonly settle: () => Promise<void>
  close(): void
}
