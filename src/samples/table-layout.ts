import { DscError } from '../failure/dsc-error.js'
import { allocatePages } from './plan/shared-pages.js'

/** Change this number with the layout: tables are kept on disk, sent to other machines, and mapped by clients. */
const MAGIC = 'DSCSAMP3'
const HEADER_BYTES = 128

/** Position of the fingerprint in the header: 32 bytes, zeros without one. */
export const FINGERPRINT_AT = 48

/** The sizes that determine a table's layout, in samples, files and bytes. */
export interface TableShape {
  readonly count: number
  /** Number of samples with a place for a name: all or none. */
  readonly nameCount: number
  readonly fileCount: number
  readonly nameBytes: number
  readonly pathBytes: number
  readonly rowNameBytes: number
  readonly encodingBytes: number
  /** Bytes of a sample's offset in its file: 4 or 8. */
  readonly offsetBytes: number
}

/** Position of each size in the header, as a double. */
const SIZES_AT: Readonly<Record<keyof TableShape, number>> = {
  count: 16,
  fileCount: 24,
  nameBytes: 32,
  pathBytes: 40,
  nameCount: 80,
  rowNameBytes: 88,
  encodingBytes: 96,
  offsetBytes: 104,
}

/** The columns of a table, as views into its one buffer. */
export type TableColumns = ReturnType<typeof columnsOf>

/** Bytes per number of a column with this largest value. */
export function bytesFor(largest: number): 4 | 8 {
  return largest < 2 ** 32 ? 4 : 8
}

/**
 * Allocates a table and its header. Layout (little endian): header of 128 bytes, then the columns in the order below.
 */
export function allocateTable(shape: TableShape): {
  readonly bytes: Uint8Array<SharedArrayBuffer>
  readonly columns: TableColumns
} {
  const bytes = allocatePages(Uint8Array<SharedArrayBuffer>, sizeOf(shape))
  const view = new DataView(bytes.buffer)
  bytes.set(Buffer.from(MAGIC), 0)
  for (const [name, at] of Object.entries(SIZES_AT))
    view.setFloat64(at, shape[name as keyof TableShape], true)
  return { bytes, columns: columnsOf(bytes.buffer, shape) }
}

/** Opens the columns of a table that was kept or sent. Throws FEED_PROTOCOL if its sizes contradict each other. */
export function openColumns(bytes: Uint8Array<SharedArrayBuffer>): {
  readonly shape: TableShape
  readonly columns: TableColumns
} {
  const isTable = bytes.length >= HEADER_BYTES && Buffer.from(bytes.slice(0, 8)).toString('latin1') === MAGIC
  if (isTable) {
    const view = new DataView(bytes.buffer)
    const sizes = Object.entries(SIZES_AT).map(([name, at]) => [name, view.getFloat64(at, true)])
    const shape = Object.fromEntries(sizes) as unknown as TableShape
    const isWhole = Object.values(shape).every((size) => Number.isSafeInteger(size) && size >= 0)
    const isNamed = shape.nameCount === 0 || shape.nameCount === shape.count
    const isOffset = shape.offsetBytes === 4 || shape.offsetBytes === 8
    if (isWhole && isNamed && isOffset && sizeOf(shape) === bytes.length)
      return { shape, columns: columnsOf(bytes.buffer, shape) }
  }
  throw new DscError('FEED_PROTOCOL', 'a samples manifest is damaged or of another version of dsc', {
    hint: 'make it again: dsc feed plan --refresh',
  })
}

/** Returns the start of each column, in bytes, and the end of the last. Each starts at a multiple of its numbers. */
function placeColumns(shape: TableShape) {
  const { count, nameCount, fileCount } = shape
  let end = HEADER_BYTES
  const place = (numbers: number, bytesEach: number) => {
    const start = Math.ceil(end / bytesEach) * bytesEach
    end = start + numbers * bytesEach
    return start
  }
  const starts = {
    pathEnds: place(fileCount, 8),
    rowNameEnds: place(fileCount, 8),
    firstSamples: place(fileCount, 8),
    offsets: place(count, shape.offsetBytes),
    nameEnds: place(nameCount, bytesFor(shape.nameBytes)),
    lengths: place(count, 4),
    files: place(count, 4),
    crcs: place(count, 4),
    fileEncodings: place(fileCount, 4),
    names: place(shape.nameBytes, 1),
    paths: place(shape.pathBytes, 1),
    rowNames: place(shape.rowNameBytes, 1),
    encodings: place(shape.encodingBytes, 1),
  }
  return { starts, end }
}

function sizeOf(shape: TableShape): number {
  return placeColumns(shape).end
}

function columnsOf(buffer: SharedArrayBuffer, shape: TableShape) {
  const { count, nameCount, fileCount } = shape
  const { starts } = placeColumns(shape)
  const wideOrNot = (bytesEach: number, start: number, length: number): Uint32Array | Float64Array =>
    bytesEach === 4 ? new Uint32Array(buffer, start, length) : new Float64Array(buffer, start, length)
  return {
    pathEnds: new Float64Array(buffer, starts.pathEnds, fileCount),
    rowNameEnds: new Float64Array(buffer, starts.rowNameEnds, fileCount),
    /** The first sample of each file: numbers in the names of its rows count from it. */
    firstSamples: new Float64Array(buffer, starts.firstSamples, fileCount),
    offsets: wideOrNot(shape.offsetBytes, starts.offsets, count),
    nameEnds: wideOrNot(bytesFor(shape.nameBytes), starts.nameEnds, nameCount),
    lengths: new Uint32Array(buffer, starts.lengths, count),
    files: new Uint32Array(buffer, starts.files, count),
    crcs: new Uint32Array(buffer, starts.crcs, count),
    /** Index into the encodings. */
    fileEncodings: new Uint32Array(buffer, starts.fileEncodings, fileCount),
    names: new Uint8Array(buffer, starts.names, shape.nameBytes),
    paths: new Uint8Array(buffer, starts.paths, shape.pathBytes),
    rowNames: new Uint8Array(buffer, starts.rowNames, shape.rowNameBytes),
    /** JSON. */
    encodings: new Uint8Array(buffer, starts.encodings, shape.encodingBytes),
  }
}
