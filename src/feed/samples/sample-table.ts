import { createHash } from 'node:crypto'
import { DscError } from '../../failure/dsc-error.js'

/**
 * What the bytes of a sample are: `file` a whole file, `member` the contents of one tar member,
 * `tar` a slice of a tar shard with all members of one key, headers included (WebDataset).
 */
const SAMPLE_FORMATS = ['file', 'member', 'tar'] as const
export type SampleFormat = (typeof SAMPLE_FORMATS)[number]

/** One sample while the table is made. */
export interface SampleRow {
  readonly name: string
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
  /** SHA-256 (hex) of all names, lengths and checksums, in order. Equal fingerprints mean equal samples. */
  readonly fingerprint: string
  /** Bytes of all samples. */
  readonly totalBytes: number
  readonly largestBytes: number
  readonly lengths: Uint32Array
  readonly crcs: Uint32Array
  readonly files: Uint32Array
  readonly offsets: Float64Array
  readonly fileCount: number
  nameOf(sample: number): string
  fileName(file: number): string
  /** The table as it is on disk and on the wire. */
  readonly bytes: Uint8Array
}

const MAGIC = 'DSCSAMP1'
const HEADER_BYTES = 128

/** Puts rows into a table. Layout (little endian): header of 128 bytes, then the columns in the order below. */
export function buildSampleTable(
  format: SampleFormat,
  fileNames: readonly string[],
  rows: readonly SampleRow[],
): SampleTable {
  const names = rows.map((row) => Buffer.from(row.name))
  const paths = fileNames.map((name) => Buffer.from(name))
  const nameBytes = names.reduce((sum, name) => sum + name.length, 0)
  const pathBytes = paths.reduce((sum, path) => sum + path.length, 0)
  const size = HEADER_BYTES + rows.length * 28 + paths.length * 8 + nameBytes + pathBytes
  const bytes = new Uint8Array(new SharedArrayBuffer(size))
  const view = new DataView(bytes.buffer)
  const hash = createHash('sha256')
  for (const [i, row] of rows.entries())
    hash.update(names[i]!).update(`\0${row.length}\0${row.crc32.toString(16)}\n`)
  bytes.set(Buffer.from(MAGIC), 0)
  view.setUint32(8, SAMPLE_FORMATS.indexOf(format), true)
  view.setFloat64(16, rows.length, true)
  view.setFloat64(24, paths.length, true)
  view.setFloat64(32, nameBytes, true)
  view.setFloat64(40, pathBytes, true)
  bytes.set(hash.digest(), 48)
  const columns = columnsOf(bytes.buffer, rows.length, paths.length, nameBytes)
  let end = 0
  for (const [i, row] of rows.entries()) {
    columns.names.set(names[i]!, end)
    end += names[i]!.length
    columns.nameEnds[i] = end
    columns.offsets[i] = row.offset
    columns.lengths[i] = row.length
    columns.files[i] = row.file
    columns.crcs[i] = row.crc32
  }
  end = 0
  for (const [i, path] of paths.entries()) {
    columns.paths.set(path, end)
    end += path.length
    columns.pathEnds[i] = end
  }
  return openSampleTable(bytes)
}

function columnsOf(buffer: ArrayBufferLike, count: number, fileCount: number, nameBytes: number) {
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
  const columns = columnsOf(bytes.buffer, count!, fileCount!, nameBytes!)
  const text = (column: Uint8Array, ends: Float64Array, i: number) =>
    Buffer.from(column.slice(i === 0 ? 0 : ends[i - 1]!, ends[i]!)).toString()
  let totalBytes = 0
  let largestBytes = 0
  for (const length of columns.lengths) {
    totalBytes += length
    if (length > largestBytes) largestBytes = length
  }
  return {
    count: count!,
    format: SAMPLE_FORMATS[view.getUint32(8, true)] ?? 'file',
    fingerprint: Buffer.from(bytes.slice(48, 80)).toString('hex'),
    totalBytes,
    largestBytes,
    fileCount: fileCount!,
    ...columns,
    nameOf: (sample) => text(columns.names, columns.nameEnds, sample),
    fileName: (file) => text(columns.paths, columns.pathEnds, file),
    bytes,
  }
}
