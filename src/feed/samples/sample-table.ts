import { DscError } from '../../failure/dsc-error.js'
import type { BytePath } from './byte-path.js'

/**
 * What the bytes of a sample are: `file` a whole file, `member` the contents of one tar member,
 * `tar` a slice of a tar shard with all members of one key, headers included (WebDataset).
 */
const SAMPLE_FORMATS = ['file', 'member', 'tar'] as const
/** How a sample lies in its file. */
export type SampleFormat = (typeof SAMPLE_FORMATS)[number]

/** One sample while the table is made. */
export interface SampleRow {
  readonly name: BytePath
  /** Index into the files. */
  readonly file: number
  /** Where it begins in its file, in bytes. */
  readonly offset: number
  /** 1 byte to 4 GiB − 1; 0 for an empty file. */
  readonly length: number
  readonly crc32: number
}

/**
 * The manifest of samples: for every id (0 … count − 1) its name, file, place, length and CRC-32, in columns, in
 * shared memory, so that reader threads and (by mmap) Python clients look at the same bytes.
 */
export interface SampleTable {
  readonly count: number
  readonly format: SampleFormat
  /**
   * SHA-256 (hex) of all names, lengths and checksums, in order. Equal fingerprints mean equal samples. Empty in a
   * table that was made before the bytes were here.
   */
  readonly fingerprint: string
  /** Bytes of all samples. */
  readonly totalBytes: number
  readonly largestBytes: number
  readonly lengths: Uint32Array
  readonly crcs: Uint32Array
  /** 1 for each sample whose checksum is known, which the first to read it notes; absent: all are. Shared memory. */
  readonly known?: Uint8Array | undefined
  readonly files: Uint32Array
  readonly offsets: Float64Array
  readonly fileCount: number
  /** All names, one behind the other; where each ends. */
  readonly names: Uint8Array
  readonly nameEnds: Float64Array
  /** For people; `rawNameOf` tells apart what is not UTF-8. */
  nameOf(sample: number): string
  rawNameOf(sample: number): BytePath
  fileName(file: number): string
  rawFileName(file: number): BytePath
  /** The table as it is on disk and on the wire. */
  readonly bytes: Uint8Array
}

const MAGIC = 'DSCSAMP1'
const HEADER_BYTES = 128

/** The sizes that a table's layout follows from. */
export interface SampleTableShape {
  readonly format: SampleFormat
  readonly count: number
  readonly fileCount: number
  readonly nameBytes: number
  readonly pathBytes: number
}

/** Throws USAGE for a sample that is too long for a table. */
export function requireLength(name: string, length: number): void {
  if (length >= 2 ** 32)
    throw new DscError('USAGE', `sample ${name} has ${length} bytes; the feed takes samples below 4 GiB`)
}

/** Room for a table with its header. Layout (little endian): header of 128 bytes, then the columns in the order below. */
export function allocateSampleTable(shape: SampleTableShape): {
  readonly bytes: Uint8Array<SharedArrayBuffer>
  readonly columns: SampleColumns
} {
  const { format, count, fileCount, nameBytes, pathBytes } = shape
  const size = HEADER_BYTES + count * 28 + fileCount * 8 + nameBytes + pathBytes
  const bytes = new Uint8Array(new SharedArrayBuffer(size))
  const view = new DataView(bytes.buffer)
  bytes.set(Buffer.from(MAGIC), 0)
  view.setUint32(8, SAMPLE_FORMATS.indexOf(format), true)
  for (const [i, value] of [count, fileCount, nameBytes, pathBytes].entries())
    view.setFloat64(16 + 8 * i, value, true)
  return { bytes, columns: columnsOf(bytes.buffer, { count, fileCount, nameBytes }) }
}

/** Where the fingerprint stands in the header. */
export const FINGERPRINT_AT = 48

/** The columns of a table, as views into its one buffer. */
export type SampleColumns = ReturnType<typeof columnsOf>

function columnsOf(
  buffer: ArrayBufferLike,
  sizes: { readonly count: number; readonly fileCount: number; readonly nameBytes: number },
) {
  const { count, fileCount, nameBytes } = sizes
  let at = HEADER_BYTES
  const take = (bytes: number) => {
    at += bytes
    return at - bytes
  }
  return {
    offsets: new Float64Array(buffer, take(count * 8), count),
    nameEnds: new Float64Array(buffer, take(count * 8), count),
    pathEnds: new Float64Array(buffer, take(fileCount * 8), fileCount),
    lengths: new Uint32Array(buffer, take(count * 4), count),
    files: new Uint32Array(buffer, take(count * 4), count),
    crcs: new Uint32Array(buffer, take(count * 4), count),
    names: new Uint8Array(buffer, take(nameBytes), nameBytes),
    paths: new Uint8Array(buffer, at),
  }
}

function readFingerprint(bytes: Uint8Array): string {
  const digest = Buffer.from(bytes.slice(FINGERPRINT_AT, FINGERPRINT_AT + 32))
  return digest.every((byte) => byte === 0) ? '' : digest.toString('hex')
}

/** Reads a table from its bytes; copies them into shared memory unless they are there. */
export function openSampleTable(source: Uint8Array): SampleTable {
  let bytes = source
  if (!(source.buffer instanceof SharedArrayBuffer)) {
    bytes = new Uint8Array(new SharedArrayBuffer(source.length))
    bytes.set(source)
  }
  const view = new DataView(bytes.buffer)
  const isTable = bytes.length >= HEADER_BYTES && Buffer.from(bytes.slice(0, 8)).toString('latin1') === MAGIC
  const [count, fileCount, nameBytes, pathBytes] = isTable
    ? ([16, 24, 32, 40] as const).map((at) => view.getFloat64(at, true))
    : []
  const expected = HEADER_BYTES + count! * 28 + fileCount! * 8 + nameBytes! + pathBytes!
  if (!isTable || expected !== bytes.length)
    throw new DscError('FEED_PROTOCOL', 'a samples manifest is damaged or of another version of dsc', {
      hint: 'make it again: dsc feed plan --refresh',
    })
  const columns = columnsOf(bytes.buffer, {
    count: count!,
    fileCount: fileCount!,
    nameBytes: nameBytes!,
  })
  const bytesOf = (column: Uint8Array, ends: Float64Array, i: number) =>
    Buffer.from(column.slice(i === 0 ? 0 : ends[i - 1]!, ends[i]!))
  let totalBytes = 0
  let largestBytes = 0
  for (const length of columns.lengths) {
    totalBytes += length
    if (length > largestBytes) largestBytes = length
  }
  return {
    count: count!,
    format: SAMPLE_FORMATS[view.getUint32(8, true)] ?? 'file',
    fingerprint: readFingerprint(bytes),
    totalBytes,
    largestBytes,
    fileCount: fileCount!,
    ...columns,
    nameOf: (sample) => bytesOf(columns.names, columns.nameEnds, sample).toString(),
    rawNameOf: (sample) => bytesOf(columns.names, columns.nameEnds, sample).toString('latin1'),
    fileName: (file) => bytesOf(columns.paths, columns.pathEnds, file).toString(),
    rawFileName: (file) => bytesOf(columns.paths, columns.pathEnds, file).toString('latin1'),
    bytes,
  }
}
