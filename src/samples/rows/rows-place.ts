import type { BytePath } from '../byte-path.js'
import type { RowsKept } from './rows-paths.js'

/** Which columns of rows to feed, and where to unpack them. */
export interface RowsOptions {
  /** Columns of each row, in this order; undefined: all. */
  readonly columns?: readonly string[] | undefined
  /** How rows are read into memory. */
  readonly reading: RowsReading
  /**
   * Finds the place for the rows of the files below `root`, an absolute path without links; `what`, their columns,
   * distinguishes them from others of the same files.
   */
  readonly openPlace: (
    root: BytePath,
    what: readonly string[] | undefined,
    kept: RowsKept,
  ) => Promise<RowsPlace>
}

/**
 * `unpacked`: from unpacked rows · `groups`: row group by row group, with `window` of them in memory at a time ·
 * `either`: unpacked or, without room for that, in as many groups as suit the memory.
 */
export type RowsReading =
  | { readonly kind: 'unpacked' | 'either' }
  | { readonly kind: 'groups'; readonly window: number }

/** A folder for unpacked rows. */
export interface RowsPlace {
  /** Path to write them to: may go through a descriptor. */
  readonly writePath: string
  /** Path to read them from, absolute. */
  readonly readPath: string
  /** Called before about `bytes` are written; rejects if there is no room for them. */
  readonly makeRoom: (bytes: number) => Promise<void>
  /** Called once everything written is on the disk. */
  readonly settle: () => Promise<void>
  close(): void
}
