import { type BytePath, toBytes } from './byte-path.js'
import { digestSamples } from './digest-samples.js'
import type { SampleEncoding } from './sample-encoding.js'
import { openSampleTable, type SampleTable, type TableFile } from './sample-table.js'
import { allocateTable, FINGERPRINT_AT, type TableColumns, type TableShape } from './table-layout.js'

/** Number of texts to write at a time: far fewer calls, and no string that is too long. */
const TEXTS_AT_ONCE = 4096

/** Parts to make a table from. */
interface TableParts {
  /** Sizes of its samples. */
  readonly shape: Pick<TableShape, 'count' | 'nameCount' | 'nameBytes' | 'offsetBytes'>
  /** Samples point to them by number. */
  readonly files: readonly TableFile[]
  /** Without checksums, the table has no fingerprint. */
  readonly hasChecksums: boolean
}

/** Makes a table in its final memory; `fill` puts the samples into its columns, in which the files are already. */
export function makeTable(
  { shape, files, hasChecksums }: TableParts,
  fill: (columns: TableColumns) => void,
): SampleTable {
  const encodings = new Map<string, number>()
  const numbers = new Map<SampleEncoding, number>() // files share the same object
  const fileEncodings = files.map(({ encoding }) => {
    const known = numbers.get(encoding)
    if (known !== undefined) return known
    const text = JSON.stringify(encoding)
    if (!encodings.has(text)) encodings.set(text, encodings.size)
    numbers.set(encoding, encodings.get(text)!)
    return encodings.get(text)!
  })
  const encodingText = Buffer.from(`[${[...encodings.keys()].join(',')}]`)
  const { bytes, columns } = allocateTable({
    ...shape,
    fileCount: files.length,
    pathBytes: files.reduce((sum, { path }) => sum + path.length, 0), // a character is a byte
    rowNameBytes: files.reduce((sum, { rowName = '' }) => sum + rowName.length, 0),
    encodingBytes: encodingText.length,
  })
  columns.encodings.set(encodingText)
  fillTexts(
    files.map(({ path }) => path),
    columns.paths,
    columns.pathEnds,
  )
  if (columns.rowNames.length > 0)
    fillTexts(
      files.map(({ rowName = '' }) => rowName),
      columns.rowNames,
      columns.rowNameEnds,
    )
  columns.fileEncodings.set(fileEncodings)
  fill(columns)
  noteFirstSamples(columns)
  if (hasChecksums) bytes.set(digestSamples(columns, files), FINGERPRINT_AT)
  return openSampleTable(bytes)
}

/**
 * Concatenates tables in which each sample has its own name; `files` are those of the first table, then those of the
 * second, and so on.
 */
export function concatTables(tables: readonly SampleTable[], files: readonly TableFile[]): SampleTable {
  const count = tables.reduce((sum, table) => sum + table.count, 0)
  const shape = {
    count,
    nameCount: count,
    nameBytes: tables.reduce((sum, { names }) => sum + names.length, 0),
    offsetBytes: Math.max(4, ...tables.map(({ offsets }) => offsets.BYTES_PER_ELEMENT)),
  }
  return makeTable({ shape, files, hasChecksums: true }, (columns) => {
    const at = { sample: 0, file: 0, name: 0 }
    for (const table of tables) {
      columns.names.set(table.names, at.name)
      for (const column of ['offsets', 'lengths', 'crcs'] as const)
        columns[column].set(table[column], at.sample)
      for (let i = 0; i < table.count; i++) {
        columns.nameEnds[at.sample + i] = at.name + table.nameEnds[i]!
        columns.files[at.sample + i] = at.file + table.files[i]!
      }
      at.sample += table.count
      at.file += table.fileCount
      at.name += table.names.length
    }
  })
}

function noteFirstSamples({ files, firstSamples }: TableColumns): void {
  for (let sample = files.length - 1; sample >= 0; sample--) firstSamples[files[sample]!] = sample
}

/** Writes texts one after the other, and the end of each. */
function fillTexts(texts: readonly BytePath[], bytes: Uint8Array, ends: Uint32Array | Float64Array): void {
  let end = 0
  for (let at = 0; at < texts.length; at += TEXTS_AT_ONCE) {
    const some = texts.slice(at, at + TEXTS_AT_ONCE)
    bytes.set(toBytes(some.join('')), end)
    for (let i = 0; i < some.length; i++) {
      end += some[i]!.length
      ends[at + i] = end
    }
  }
}
