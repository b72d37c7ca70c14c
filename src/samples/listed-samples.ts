import { createHash } from 'node:crypto'
import type { FormatName } from '../model/sample-formats.js'
import { fromText } from './byte-path.js'
import { chooseFiles } from './choose-files.js'
import type { FormatIndexOptions } from './formats/format.js'
import { listShards, type ShardMembers } from './formats/index-shards.js'
import { listPlainFiles, noteChecksums } from './later-checksums.js'
import { packFiles } from './packed-files.js'
import type { FolderFile, LeftOut } from './plan/sample-files.js'
import { formatsOf } from './sample-encoding.js'
import { openSampleTable, type SampleTable } from './sample-table.js'

/** Number of name ends to digest at a time, as doubles even if the table has uint32, because earlier states did so. */
const DIGESTED_AT_ONCE = 1 << 16

/** Samples of files that may not be here yet. */
export interface ListedSamples {
  /** Checksums are recorded when samples are first read. */
  readonly table: SampleTable
  readonly leftOut: readonly LeftOut[]
}

/** Files with samples, which may not be here yet; for plain files, the samples, too. */
export type ListedFiles =
  | ({ readonly kind: 'files' } & ListedSamples)
  /** Paths are bytes; samples in shards can only be found by reading the shards. */
  | { readonly kind: 'shards'; readonly shards: readonly FolderFile[]; readonly leftOut: readonly LeftOut[] }
  /** Other formats, fed once the files are here. */
  | { readonly kind: 'rows'; readonly leftOut: readonly LeftOut[] }

/** Lists the samples of files with known paths (UTF-8) and sizes, like `indexSamples` does once they are here. */
export function listSamples(
  files: readonly FolderFile[],
  options: {
    /** For messages. */
    readonly folder: string
    readonly only: readonly string[] | undefined
    readonly format: FormatName | undefined
  },
): ListedFiles {
  const byBytes = files
    .map(({ path, size }) => ({ path: fromText(path), size, mtimeMs: Number.NaN }))
    .sort((a, b) => (a.path < b.path ? -1 : 1))
  const { format, files: chosen, leftOut } = chooseFiles(options.folder, byBytes, options)
  if (format === 'shards') return { kind: 'shards', shards: chosen, leftOut }
  if (format !== 'files') return { kind: 'rows', leftOut }
  return { kind: 'files', table: listPlainFiles(packFiles(chosen)), leftOut }
}

/** Lists the samples of shards with known members, like `indexSamples` does once they are here. */
export function listShardSamples(
  shards: readonly FolderFile[],
  contents: readonly ShardMembers[],
  options: FormatIndexOptions,
): ListedSamples {
  const { table, damaged, leftOut = [] } = listShards(shards, contents, options)
  return { table: noteChecksums(table), leftOut: [...leftOut, ...damaged] }
}

/** Opens a kept table; if it was made before the bytes were here, reading a sample first records its checksum. */
export function openListedTable(bytes: Uint8Array): SampleTable {
  const table = openSampleTable(bytes)
  return table.fingerprint === '' ? noteChecksums(table) : table
}

/** SHA-256 (hex) of a dataset's version and the names and lengths of its samples: equal digests mean equal samples. */
export function digestListing(table: SampleTable, version: string): string {
  const hash = createHash('sha256').update(
    `dsc listing 1\n${version}\n${formatsOf(table.encodings)}\n${table.count}\n`,
  )
  hash.update(table.names)
  for (let at = 0; at < table.nameEnds.length; at += DIGESTED_AT_ONCE)
    hash.update(bytesOf(Float64Array.from(table.nameEnds.subarray(at, at + DIGESTED_AT_ONCE))))
  hash.update(bytesOf(table.lengths))
  for (let file = 0; table.nameEnds.length === 0 && file < table.fileCount; file++)
    hash.update(`${table.fileAt(file).rowName}\n`, 'latin1')
  return hash.digest('hex')
}

const bytesOf = ({ buffer, byteOffset, byteLength }: Float64Array | Uint32Array): Uint8Array =>
  new Uint8Array(buffer, byteOffset, byteLength)
