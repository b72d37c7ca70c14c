import { DscError } from '../failure/dsc-error.js'
import { type BytePath, fromBytes, toText } from './byte-path.js'
import { allocatePages } from './plan/shared-pages.js'
import { parseEncodings, type SampleEncoding } from './sample-encoding.js'
import { FINGERPRINT_AT, openColumns } from './table-layout.js'

/** Location of one sample. */
export interface SamplePlace {
  /** Index into the files. */
  readonly file: number
  /** Position in its file, in bytes. */
  readonly offset: number
  /** 1 byte to 4 GiB − 1; 0 for an empty file. */
  readonly length: number
  readonly crc32: number
}

/** One sample while the table is made. */
export interface SampleRow extends SamplePlace {
  readonly name: BytePath
}

/** A file of a table. */
export interface TableFile {
  readonly path: BytePath
  readonly encoding: SampleEncoding
  /**
   * Base of its samples' names. They follow each other in the table and have no names of their own: they are
   * `<rowName>:0`, `<rowName>:1` and so on, which takes no memory.
   */
  readonly rowName?: BytePath | undefined
}

/** Files of one encoding. */
export function tableFiles(encoding: SampleEncoding, paths: readonly BytePath[]): readonly TableFile[] {
  return paths.map((path) => ({ path, encoding }))
}

/**
 * The manifest of samples: name, file, position, length and CRC-32 for every id (0 … count − 1), in columns in shared
 * memory, so that reader threads and (by mmap) Python clients use the same bytes.
 */
export interface SampleTable {
  readonly count: number
  /** Distinct encodings of the files. */
  readonly encodings: readonly SampleEncoding[]
  /** Whether some samples are parts of files. If so, files stay open and are read in their own order. */
  readonly isSharded: boolean
  /**
   * SHA-256 (hex) of all names, lengths and checksums, in order. Equal fingerprints mean equal samples. Empty if the
   * table was made before the bytes were here.
   */
  readonly fingerprint: string
  /** Bytes of all samples. */
  readonly totalBytes: number
  readonly largestBytes: number
  readonly lengths: Uint32Array
  readonly crcs: Uint32Array
  /** 1 for each sample with a known checksum, recorded by its first reader; absent: all are known. Shared memory. */
  readonly known?: Uint8Array | undefined
  /**
   * Modification time (ms) of each file when it was listed: one that was written to since then is not read before its
   * checksum is known. NaN: only its size was known. Absent: files do not change. Shared memory.
   */
  readonly listedMs?: Float64Array | undefined
  readonly files: Uint32Array
  readonly offsets: Uint32Array | Float64Array
  readonly fileCount: number
  /** The paths of all files, one after the other. */
  readonly paths: Uint8Array
  /** All names, one after the other, and the end of each; no ends if no sample has its own name. */
  readonly names: Uint8Array
  readonly nameEnds: Uint32Array | Float64Array
  /** For people; only `rawNameOf` distinguishes names that are not UTF-8. */
  nameOf(sample: number): string
  rawNameOf(sample: number): BytePath
  encodingOf(sample: number): SampleEncoding
  /** The file as passed to the builder. */
  fileAt(file: number): TableFile
  fileName(file: number): string
  rawFileName(file: number): BytePath
  /** The table in its form on disk and on the wire. */
  readonly bytes: Uint8Array
}

/** Location of a sample, for a table in which these files follow `firstFile` others. */
export function placeOf(table: SampleTable, sample: number, firstFile = 0): SamplePlace {
  return {
    file: firstFile + table.files[sample]!,
    offset: table.offsets[sample]!,
    length: table.lengths[sample]!,
    crc32: table.crcs[sample]!,
  }
}

/** Throws USAGE for a sample too long for a table. */
export function requireLength(nameOf: () => string, length: number): void {
  if (length < 2 ** 32) return
  throw new DscError('USAGE', `sample ${nameOf()} has ${length} bytes; the feed takes samples below 4 GiB`)
}

/** Opens a table from its bytes; copies them to shared memory if needed. */
export function openSampleTable(source: Uint8Array): SampleTable {
  const bytes = toSharedMemory(source)
  const { shape, columns } = openColumns(bytes)
  const encodings = parseEncodings(columns.encodings)
  const { files, lengths, crcs, offsets, names, nameEnds, firstSamples } = columns
  let totalBytes = 0
  let largestBytes = 0
  for (const length of lengths) {
    totalBytes += length
    if (length > largestBytes) largestBytes = length
  }
  const rawFileName = (file: number) => textOf(columns.paths, columns.pathEnds, file)
  const rawNameOf = (sample: number) => {
    const file = files[sample]!
    const rowName = textOf(columns.rowNames, columns.rowNameEnds, file)
    return rowName === '' ? textOf(names, nameEnds, sample) : `${rowName}:${sample - firstSamples[file]!}`
  }
  const encodingAt = (file: number) => encodings[columns.fileEncodings[file]!] ?? encodings[0]!
  return {
    count: shape.count,
    encodings,
    isSharded: encodings.some(({ format }) => format !== 'file'),
    fingerprint: readFingerprint(bytes),
    totalBytes,
    largestBytes,
    fileCount: shape.fileCount,
    paths: columns.paths,
    ...{ files, lengths, crcs, offsets, names, nameEnds },
    nameOf: (sample) => toText(rawNameOf(sample)),
    rawNameOf,
    encodingOf: (sample) => encodingAt(files[sample]!),
    fileAt(file) {
      const rowName = textOf(columns.rowNames, columns.rowNameEnds, file)
      return { path: rawFileName(file), encoding: encodingAt(file), rowName: rowName || undefined }
    },
    fileName: (file) => toText(rawFileName(file)),
    rawFileName,
    bytes,
  }
}

function toSharedMemory(source: Uint8Array): Uint8Array<SharedArrayBuffer> {
  if (source.buffer instanceof SharedArrayBuffer) return source as Uint8Array<SharedArrayBuffer>
  const bytes = allocatePages(Uint8Array<SharedArrayBuffer>, source.length)
  bytes.set(source)
  return bytes
}

function textOf(column: Uint8Array, ends: Uint32Array | Float64Array, i: number): BytePath {
  return fromBytes(column.slice(i === 0 ? 0 : ends[i - 1]!, ends[i]!))
}

function readFingerprint(bytes: Uint8Array): string {
  const digest = Buffer.from(bytes.slice(FINGERPRINT_AT, FINGERPRINT_AT + 32))
  return digest.every((byte) => byte === 0) ? '' : digest.toString('hex')
}
