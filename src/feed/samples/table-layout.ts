import { DscError } from '../../failure/dsc-error.js'

/** Another layout, another number: tables are kept on disk, sent to other machines, and mapped by clients. */
const MAGIC = 'DSCSAMP2'
const HEADER_BYTES = 128

/** Where the fingerprint stands in the header: 32 bytes, zeros where there is none. */
export const FINGERPRINT_AT = 48

/** The sizes that a table's layout follows from, in samples, files and bytes. */
interface TableShape {
  readonly count: number
  /** Samples with a place for a name: all or none. */
  readonly nameCount: number
  readonly fileCount: number
  readonly nameBytes: number
  readonly pathBytes: number
  readonly rowNameBytes: number
  readonly encodingBytes: number
}

/** Where each size stands in the header, as a double. */
const SIZES_AT: Readonly<Record<keyof TableShape, number>> = {
  count: 16,
  fileCount: 24,
  nameBytes: 32,
  pathBytes: 40,
  nameCount: 80,
  rowNameBytes: 88,
  encodingBytes: 96,
}

/** The columns of a table, as views into its one buffer. */
export type TableColumns = ReturnType<typeof columnsOf>

/** Room for a table with its header. Layout (little endian): header of 128 bytes, then the columns in the order below. */
export function allocateTable(shape: TableShape): {
  readonly bytes: Uint8Array<SharedArrayBuffer>
  readonly columns: TableColumns
} {
  const bytes = new Uint8Array(new SharedArrayBuffer(sizeOf(shape)))
  const view = new DataView(bytes.buffer)
  bytes.set(Buffer.from(MAGIC), 0)
  for (const [name, at] of Object.entries(SIZES_AT))
    view.setFloat64(at, shape[name as keyof TableShape], true)
  return { bytes, columns: columnsOf(bytes.buffer, shape) }
}

/** The columns of a table that was kept or sent. Throws FEED_PROTOCOL where its sizes contradict each other. */
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
    if (isWhole && isNamed && sizeOf(shape) === bytes.length)
      return { shape, columns: columnsOf(bytes.buffer, shape) }
  }
  throw new DscError('FEED_PROTOCOL', 'a samples manifest is damaged or of another version of dsc', {
    hint: 'make it again: dsc feed plan --refresh',
  })
}

function sizeOf(shape: TableShape): number {
  const { count, nameCount, fileCount, nameBytes, pathBytes, rowNameBytes, encodingBytes } = shape
  const columns = count * 20 + nameCount * 8 + fileCount * 28
  return HEADER_BYTES + columns + nameBytes + pathBytes + rowNameBytes + encodingBytes
}

function columnsOf(buffer: SharedArrayBuffer, shape: TableShape) {
  const { count, nameCount, fileCount } = shape
  let at = HEADER_BYTES
  const take = (bytes: number) => {
    at += bytes
    return at - bytes
  }
  const bytesOf = (length: number) => new Uint8Array(buffer, take(length), length)
  return {
    offsets: new Float64Array(buffer, take(count * 8), count),
    nameEnds: new Float64Array(buffer, take(nameCount * 8), nameCount),
    pathEnds: new Float64Array(buffer, take(fileCount * 8), fileCount),
    rowNameEnds: new Float64Array(buffer, take(fileCount * 8), fileCount),
    /** The first sample of each file: what the numbers in the names of its rows count from. */
    firstSamples: new Float64Array(buffer, take(fileCount * 8), fileCount),
    lengths: new Uint32Array(buffer, take(count * 4), count),
    files: new Uint32Array(buffer, take(count * 4), count),
    crcs: new Uint32Array(buffer, take(count * 4), count),
    /** Index into the encodings. */
    fileEncodings: new Uint32Array(buffer, take(fileCount * 4), fileCount),
    names: bytesOf(shape.nameBytes),
    paths: bytesOf(shape.pathBytes),
    rowNames: bytesOf(shape.rowNameBytes),
    /** JSON. */
    encodings: bytesOf(shape.encodingBytes),
  }
}
