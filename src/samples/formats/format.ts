import type { ToldDialect } from '../../model/sample-formats.js'
import type { BytePath } from '../byte-path.js'
import type { ListedFile } from '../packed-files.js'
import type { LeftOut, Recognition } from '../plan/sample-files.js'
import type { RowGroups } from '../rows/row-groups.js'
import type { RowsOptions } from '../rows/rows-place.js'
import type { SampleTable } from '../sample-table.js'

/** How to handle damage in a file, and a callback for progress. */
export interface FormatIndexOptions {
  /** `raise`: damage is an error · `skip`: samples before the damage are fed, and the rest is reported. */
  readonly onDamage: 'raise' | 'skip'
  /** How CSV is written, as far as the user says. */
  readonly dialect?: ToldDialect | undefined
  /** How and where to unpack rows; absent: they cannot be unpacked. */
  readonly rows?: RowsOptions | undefined
  readonly onProgress?: ((filesDone: number, filesTotal: number) => void) | undefined
}

/** Files to index. */
export interface IndexRequest extends FormatIndexOptions {
  /** The folder, absolute. */
  readonly root: BytePath
  /** The files that hold samples, as recognized by the format, in byte order of their paths. */
  readonly files: readonly ListedFile[]
  /** For a format with its own index: existing tables of these files; undefined: none are shared. */
  readonly shared?: SharedIndex | undefined
}

/** Shared tables of the same files, wherever those are; `what` distinguishes tables of different columns. */
export interface SharedIndex {
  find(what: string): Promise<SampleTable | undefined>
  keep(what: string, table: SampleTable): void
}

/** Files to index instead, in byte order of the paths. */
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
  /** Sound content that belongs to no sample, as members of a shard may. */
  readonly leftOut?: readonly LeftOut[]
  /** Base of the table's paths; absent: the requested root. */
  readonly root?: string
  /** Groups in which to read the rows. */
  readonly groups?: RowGroups
  /** For a format with its own index: whether all of it already existed. */
  readonly isMadeBefore?: boolean
}

/**
 * One way in which samples lie in files. `recognition` (data) says which files hold them; `index` says where each
 * sample begins in its file, how long it is, and what its bytes are (`SampleEncoding`). Everything else (order, resume,
 * requests, memory) knows only samples. To add a format, add a file beside this one, its name in `FORMAT_NAMES`, and
 * its line in `FORMATS`.
 */
export interface Format {
  readonly recognition: Recognition
  /** Whether the format keeps its own index, so that its tables are not kept. */
  readonly hasOwnIndex?: boolean
  /** Makes readable files from unreadable ones; undefined: all are readable. Rejects with a DscError. */
  unpack?(request: IndexRequest): Promise<UnpackedFiles | undefined>
  /** Throws a DscError that names file and byte if a file is damaged and `onDamage` is 'raise'. */
  index(request: IndexRequest): IndexedSamples | Promise<IndexedSamples>
}

/** Samples are contents of members, or slices of shards including the headers. */
export type ShardFormat = 'member' | 'tar'
