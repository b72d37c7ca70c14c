import { realpathSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { DscError } from '../failure/dsc-error.js'
import { formatCount } from '../model/format-count.js'
import type { FormatName } from '../model/sample-formats.js'
import { isRefused } from '../platform/disk-failure.js'
import { fromText, toText } from './byte-path.js'
import { chooseListed, findPlain } from './choose-files.js'
import type { FormatIndexOptions, SharedIndex } from './formats/format.js'
import { FORMATS, RECOGNITIONS } from './formats/formats.js'
import { keepTable, readKeptNotes, readKeptTable } from './kept-tables.js'
import { findFingerprint, listPlainFiles, listTimes, readRest } from './later-checksums.js'
import { type FolderListing, type LinkRule, listFolder, type MeasureFiles } from './list-folder.js'
import { packFiles } from './packed-files.js'
import type { FolderFile, LeftOut } from './plan/sample-files.js'
import { findNamedSplits, mayNameSplits } from './plan/split-files.js'
import type { RowGroups } from './rows/row-groups.js'
import { openSampleTable, type SampleTable } from './sample-table.js'
import { type KeptListing, sharedStampOf, stampOf } from './table-stamps.js'

/** Samples on a local disk: a directory tree of files that are samples or hold them. */
export interface SampleFolder {
  /** Base of the table's file paths: an absolute path without symbolic links. */
  readonly root: string
  readonly table: SampleTable
  readonly format: FormatName
  /** Whether the table came from the cache instead of being made. */
  readonly isCached: boolean
  /** Content of the folder that is not fed. */
  readonly leftOut: readonly LeftOut[]
  /** Groups in which to read rows that are not unpacked. */
  readonly groups?: RowGroups | undefined
  /** Keeps the table if every sample was read by now, or all but a few; absent if it is kept already. */
  keepKnown?(): void
}

/** Tables that do not depend on the location of the files; `files` identifies their format, paths and sizes. */
export interface SharedTables {
  find(files: string): Promise<Uint8Array | undefined>
  keep(files: string, table: SampleTable): void
}

/** Which files of a folder are samples, and where to keep their table. */
export interface IndexOptions {
  /** Folder that keeps tables between runs; undefined: none are kept. */
  readonly cacheFolder: string | undefined
  /** Only files with one of these extensions (without the dot), or that match a glob, are samples. Default: all. */
  readonly only?: readonly string[] | undefined
  /** Only files of this split, by their names or by the card; undefined: all. */
  readonly split?: string | undefined
  /** How samples lie in the files. Default: the format of most bytes of the folder. */
  readonly format?: FormatName | undefined
  /** Default 'follow'. */
  readonly links?: LinkRule | undefined
  /** How CSV is written, as far as the user says. */
  readonly dialect?: FormatIndexOptions['dialect']
  /** How to handle a damaged file of samples. Default 'raise'. */
  readonly onDamage?: FormatIndexOptions['onDamage'] | undefined
  /** How and where to unpack rows. Absent: formats that need it are refused. */
  readonly rows?: FormatIndexOptions['rows']
  /** Existing tables of these files that others have made; undefined: none. */
  readonly shared?: SharedTables | undefined
  /** The files of the folder, if they are known; used only if all are plain files. */
  readonly listing?: FolderListing | undefined
  /** Looks at the files in threads; absent: this thread does. */
  readonly measure?: MeasureFiles | undefined
  /** Whether the first reader of a plain file records its checksum, instead of reading all of them now. */
  readonly isReadLater?: boolean | undefined
  /** Remakes the table even if a cached one fits. */
  readonly isRefreshed?: boolean
  readonly onProgress?: (filesDone: number, filesTotal: number) => void
}

/**
 * Lists the samples under `folder` once: it keeps the table and reuses it while path, size and modification time of
 * every file stay the same. The format is that of most bytes of the folder. Rejects with SOURCE_DENIED if the caller
 * may not read something in it.
 */
export async function indexSamples(folder: string, options: IndexOptions): Promise<SampleFolder> {
  try {
    return await index(folder, options)
  } catch (error) {
    throw describeDenied(error, folder)
  }
}

async function index(folder: string, options: IndexOptions): Promise<SampleFolder> {
  const listedRoot = findRoot(folder)
  const { links = 'follow', measure, listing } = options
  const plain = listing && links === 'follow' ? findPlain(listing.files, options) : undefined
  const { files: listed, leftOut } = plain ? listing! : await listFolder(listedRoot, links, measure)
  const chosen = plain ?? (await chooseListed(folder, listedRoot, listed, options))
  const told = [...leftOut, ...chosen.leftOut.map(({ path, reason }) => ({ path: toText(path), reason }))]
  const { cacheFolder, onDamage = 'raise', dialect, rows, shared, onProgress } = options
  const format = FORMATS[chosen.format]
  const asked = { root: fromText(listedRoot), onDamage, dialect, rows, onProgress }
  const unpacked = await format.unpack?.({ ...asked, files: chosen.files.list() })
  const root = unpacked?.root ?? listedRoot
  const files = unpacked ? packFiles(unpacked.files) : chosen.files
  const isKept = cacheFolder !== undefined && !format.hasOwnIndex
  const kept = { format: chosen.format, files, how: JSON.stringify([onDamage, dialect]) }
  const stamp = isKept && stampOf(root, kept)
  const cachePath = isKept ? join(cacheFolder, `${stamp}.samples`) : undefined
  if (cachePath !== undefined && !options.isRefreshed) {
    const cached = readKeptTable(cachePath)
    if (cached) {
      const leftOut = [...told, ...readKeptNotes(cachePath)]
      return { root, table: openSampleTable(cached), format: chosen.format, isCached: true, leftOut }
    }
  }
  const sharedStamp = isKept && shared && sharedStampOf(kept)
  if (sharedStamp && !options.isRefreshed) {
    const table = openFitting(await shared.find(sharedStamp), files.list())
    if (table) {
      keepTable(cachePath!, table)
      return { root, table, format: chosen.format, isCached: true, leftOut: told }
    }
  }
  if (options.isReadLater && chosen.format === 'files') {
    const table = { ...listPlainFiles(files), listedMs: listTimes(files) }
    const keepKnown = () => {
      readRest(root, table)
      const known = findFingerprint(table)
      if (known && cachePath !== undefined) keepTable(cachePath, known)
      if (known && sharedStamp) shared.keep(sharedStamp, known)
    }
    return { root, table, format: chosen.format, isCached: false, leftOut: told, keepKnown }
  }
  const ownIndex = format.hasOwnIndex && !options.isRefreshed ? shared : undefined
  const found = await format.index({
    ...asked,
    root: fromText(root),
    files: files.list(),
    shared: ownIndex && shareIndex(ownIndex, kept),
  })
  const {
    table,
    damaged,
    leftOut: passedOver = [],
    groups,
    isMadeBefore = false,
    root: tableRoot = root,
  } = found
  if (table.count === 0) throw noSamples(folder, chosen.files.list())
  if (cachePath !== undefined && damaged.length === 0) keepTable(cachePath, table, passedOver)
  // Others would not hear of content that is left out: each node finds it.
  if (sharedStamp && damaged.length === 0 && passedOver.length === 0) shared.keep(sharedStamp, table)
  const allLeftOut = [...told, ...passedOver, ...damaged]
  const { format: name } = chosen
  return { root: tableRoot, table, format: name, isCached: isMadeBefore, leftOut: allLeftOut, groups }
}

/** Explains a denied read in the folder. A failure elsewhere, such as writing an index, is not its owner's concern. */
function describeDenied(error: unknown, folder: string): unknown {
  const { code, path } = (error ?? {}) as NodeJS.ErrnoException
  if (path === undefined || !isRefused(error) || !`${path}/`.startsWith(`${findRoot(folder)}/`)) return error
  return new DscError('SOURCE_DENIED', `${path}: no permission to read (${code})`, {
    hint: 'ask its owner to let you read it, or feed a folder without it',
    cause: error,
  })
}

/** Explains why the chosen files, at least one, have nothing to feed. */
export function noSamples(folder: string, files: readonly FolderFile[]): DscError {
  const first = toText(files[0]!.path)
  return new DscError('SOURCE_EMPTY', `${folder} holds no samples that could be read`, {
    hint: `look at the first file: ${first} is empty or damaged, or not what its name says (--as)`,
  })
}

function findRoot(folder: string): string {
  try {
    const root = realpathSync(folder)
    if (!statSync(root).isDirectory()) throw new Error('not a directory')
    return root
  } catch (cause) {
    throw new DscError('COPY_NOT_FOUND', `${folder} is not a directory that can be read`, {
      hint: 'dsc prepare <dataset> prints the path of a copy',
      cause,
    })
  }
}

/** Shares lists of the same files for a format that keeps its own index. */
function shareIndex(shared: SharedTables, listed: KeptListing): SharedIndex {
  const stamp = sharedStampOf(listed)
  return {
    find: async (what) => openFitting(await shared.find(`${stamp}\n${what}`), listed.files.list()),
    keep: (what, table) => shared.keep(`${stamp}\n${what}`, table),
  }
}

/** Opens a table that contains only these files; undefined if it does not fit. */
function openFitting(bytes: Uint8Array | undefined, files: readonly FolderFile[]): SampleTable | undefined {
  if (bytes === undefined) return undefined
  try {
    const table = openSampleTable(bytes)
    const paths = new Set(files.map(({ path }) => path))
    const named = Array.from({ length: table.fileCount }, (_, file) => table.rawFileName(file))
    return table.fingerprint !== '' && named.every((path) => paths.has(path)) ? table : undefined
  } catch {
    return undefined // damaged, or of another version of dsc
  }
}

/** Describes what a folder was taken for: `dsc: 1,024 samples in 3 files (Parquet files)`. */
export function explainFound({ table, format }: Pick<SampleFolder, 'table' | 'format'>): string {
  const samples = formatCount(table.count, 'sample')
  return `dsc: ${samples} in ${formatCount(table.fileCount, 'file')} (${RECOGNITIONS[format].title})`
}

/** Describes the parts of a folder that are not fed; undefined if everything is. */
export function explainLeftOut(leftOut: readonly LeftOut[]): string | undefined {
  if (leftOut.length === 0) return undefined
  const some = leftOut.slice(0, 5).map(({ path, reason }) => `${path} (${reason})`)
  const more = leftOut.length > some.length ? ', …' : ''
  return `dsc: ${leftOut.length} not fed: ${some.join(', ')}${more}`
}

/** Warns of files whose names tell splits apart, if all are fed as one; undefined if they are not. */
export function explainSplits({ table }: Pick<SampleFolder, 'table'>): string | undefined {
  if (table.fileCount > LISTED_FILES || !mayNameSplits(Buffer.from(table.paths).toString('latin1')))
    return undefined
  const names = Array.from({ length: table.fileCount }, (_, file) => table.fileName(file))
  const splits = findNamedSplits(names)
  if (splits.length === 0) return undefined
  return `dsc: the splits ${splits.join(', ')} are fed as one: --split ${splits.includes('train') ? 'train' : splits[0]} feeds one of them`
}

/** In a folder of more files, each is a sample, and its name need not be the name of a split. */
const LISTED_FILES = 100_000
