import type { BytePath } from '../byte-path.js'
import type { ListedFile } from '../list-folder.js'
import type { LeftOut, Recognition } from '../plan/sample-files.js'
import type { RowGroups } from '../rows/row-groups.js'
import type { RowsOptions } from '../rows/rows-place.js'
import type { SampleTable } from '../sample-table.js'

/** What becomes of damage in a file, and who hears how far the index is. */
export interface FormatIndexOptions {
  /** `raise`: damage is an error · `skip`: what comes before the damage is fed, and the rest told. */
  readonly onDamage: 'raise' | 'skip'
  /** Rows that are unpacked, and where; absent: they cannot be. */
  readonly rows?: RowsOptions | undefined
  readonly onProgress?: ((filesDone: number, filesTotal: number) => void) | undefined
}

/** What is to be indexed. */
export interface IndexRequest extends FormatIndexOptions {
  /** The folder, absolute. */
  readonly root: BytePath
  /** The files that hold samples, in byte order of their paths; those that the format recognized. */
  readonly files: readonly ListedFile[]
  /** Of a format with its own index: tables of these files that others have made; undefined: nowhere. */
  readonly shared?: SharedIndex | undefined
}

/** Tables of the same files wherever they are; `what` tells those of different columns apart. */
export interface SharedIndex {
  find(what: string): Promise<SampleTable | undefined>
  keep(what: string, table: SampleTable): void
}

/** What is indexed instead, in byte order of the paths. */
export interface UnpackedFiles {
  /** Absolute. */
  readonly root: string
  readonly files: readonly ListedFile[]
}

/** The samples that were found. */
export interface IndexedSamples {
  readonly table: SampleTable
  /** Files, or parts of them, that cannot be read. */
  readonly damaged: readonly LeftOut[]
  /** What the files of the table are relative to; absent: the root that was asked for. */
  readonly root?: string
  /** Rows are read by these. */
  readonly groups?: RowGroups
  /** Of a format with its own index: whether all of it was there. */
  readonly isMadeBefore?: boolean
}

/**
 * One way in which samples lie in files. `recognition` (data) says which files hold them, `index` where each sample
 * begins in its file, how long it is, and what its bytes are (`SampleEncoding`). All else, order, resume, requests,
 * memory, knows samples only. A new one is a file beside this one, its name in `FORMAT_NAMES`, its line in `FORMATS`.
 */
export interface Format {
  readonly recognition: Recognition
  /** Whether an index is kept by the format itself, so that its tables are not. */
  readonly hasOwnIndex?: boolean
  /** Makes files that can be read of those that cannot; undefined: all can. Rejects with a DscError. */
  unpack?(request: IndexRequest): Promise<UnpackedFiles | undefined>
  /** Throws a DscError that names file and byte where a file is damaged and `onDamage` is 'raise'. */
  index(request: IndexRequest): IndexedSamples | Promise<IndexedSamples>
}

/** Samples are contents of members, or slices of shards with the headers. */
export type ShardFormat = 'member' | 'tar'
