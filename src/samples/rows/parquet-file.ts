import { closeSync, fstatSync, openSync, readSync } from 'node:fs'
import * as zlib from 'node:zlib'
import {
  type AsyncBuffer,
  type Compressors,
  type DecodedArray,
  type FileMetaData,
  parquetMetadataAsync,
  parquetRead,
} from 'hyparquet'
import { compressors } from 'hyparquet-compressors'
import { openOrClose } from '../../failure/closers.js'
import { DscError, isDscError } from '../../failure/dsc-error.js'
import { findFields, type RowField, storedName, withoutMeanings } from './row-fields.js'

const NOTHING = new Uint8Array(0)

/**
 * Every codec of Parquet except LZO, which is no longer written. Node itself does gzip, brotli and zstd, several times
 * as fast as JavaScript; hyparquet-compressors does snappy and lz4, which Node lacks. None returns more bytes than the
 * page states.
 */
const PARQUET_CODECS: Compressors = {
  SNAPPY: compressors.SNAPPY!,
  LZ4: (input, length) => (length === 0 ? NOTHING : compressors.LZ4!(input, length)),
  // A page with only nulls has no bytes, which hyparquet-compressors 1.1.2 takes for damage.
  LZ4_RAW: (input, length) => (length === 0 ? NOTHING : compressors.LZ4_RAW!(input, length)),
  ZSTD: compressors.ZSTD!,
  GZIP: (input, length) => zlib.gunzipSync(input, { maxOutputLength: roomFor(length) }),
  BROTLI: (input, length) => zlib.brotliDecompressSync(input, { maxOutputLength: roomFor(length) }),
  // Since Node 22.15.
  ...('zstdDecompressSync' in zlib && {
    ZSTD: (input: Uint8Array, length: number) =>
      zlib.zstdDecompressSync(input, { maxOutputLength: roomFor(length) }),
  }),
}

/** Minimum size of a file with a footer, in bytes: a magic number at each end, and the footer's length. */
const SMALLEST_BYTES = 12

/** A run of rows that is stored and read together. */
export interface RowGroup {
  /** Its place in the footer, from 0. */
  readonly place: number
  readonly firstRow: number
  readonly rowCount: number
  /** Stored size of the chosen columns, in bytes. */
  readonly storedBytes: number
  /** Approximate unpacked size of the rows, in bytes; more if values repeat, because dictionaries count once. */
  readonly unpackedBytes: number
}

/** A Parquet file open for reading. Blocking: meant for separate threads. */
export class ParquetFile {
  readonly #path: string
  readonly #descriptor: number
  readonly #metadata: FileMetaData
  readonly fields: readonly RowField[]
  readonly groups: readonly RowGroup[]

  private constructor(parts: {
    readonly path: string
    readonly descriptor: number
    readonly metadata: FileMetaData
    readonly columns: readonly string[] | undefined
  }) {
    const { path, descriptor, metadata, columns } = parts
    this.#path = path
    this.#descriptor = descriptor
    this.fields = findFields(path, metadata, columns)
    this.#metadata = withoutMeanings(metadata)
    this.groups = findGroups(path, metadata, new Set(this.fields.map(({ name }) => name)))
  }

  /**
   * Reads the footer. `shown` names the file in messages. Rejects with COPY_DAMAGED if it is not a Parquet file,
   * damaged, and with USAGE if it is encrypted or lacks one of `columns`.
   */
  static async open(options: {
    readonly path: string | Buffer
    readonly shown: string
    readonly columns: readonly string[] | undefined
  }): Promise<ParquetFile> {
    const { path, shown, columns } = options
    return openOrClose(async (closers) => {
      const descriptor = openSync(path, 'r')
      closers.add(() => closeSync(descriptor))
      return naming({ path: shown }, async () => {
        const buffer = bufferOf(descriptor)
        requirePlainFooter(shown, buffer)
        const metadata = await parquetMetadataAsync(buffer, { geoparquet: false })
        return new ParquetFile({ path: shown, descriptor, metadata, columns })
      })
    })
  }

  get rowCount(): number {
    const last = this.groups.at(-1)
    return last ? last.firstRow + last.rowCount : 0
  }

  /**
   * Passes the values of one column of a row group to `use`, in row order. Errors of `use` count as damage of the file:
   * its values may not match its schema.
   */
  async readColumn(group: RowGroup, column: number, use: (run: DecodedArray) => void): Promise<void> {
    const { name } = this.fields[column]!
    const { firstRow, rowCount } = group
    const where = `${this.nameColumn(group, column)}: `
    await naming({ path: this.#path, where }, async () => {
      const runs: DecodedArray[] = []
      await parquetRead({
        file: bufferOf(this.#descriptor),
        metadata: this.#metadata,
        columns: [storedName(name)],
        rowStart: firstRow,
        rowEnd: firstRow + rowCount,
        compressors: PARQUET_CODECS,
        utf8: false,
        geoparquet: false,
        parsers: { timestampFromNanoseconds: (nanoseconds) => nanoseconds },
        onChunk: ({ columnData }) => runs.push(columnData),
      })
      const found = runs.reduce((sum, run) => sum + run.length, 0)
      if (found !== rowCount) throw new Error(`it has ${found} values for ${rowCount} rows`)
      for (const run of runs) use(run)
    })
  }

  /** Name of a row group's column for messages. */
  nameColumn({ place }: RowGroup, column: number): string {
    return `column ${this.fields[column]!.name} of row group ${place}`
  }

  close(): void {
    closeSync(this.#descriptor)
  }
}

/** A file whose bytes are read at once. */
interface SyncBuffer extends AsyncBuffer {
  slice(start: number, end?: number): ArrayBuffer
}

function bufferOf(descriptor: number): SyncBuffer {
  const { size } = fstatSync(descriptor)
  if (size < SMALLEST_BYTES) throw new Error(`it has ${size} bytes, too few for a footer`)
  return {
    byteLength: size,
    slice(start, end = size) {
      if (!(start >= 0 && start <= end && end <= size))
        throw new Error(`its footer points to bytes ${start} to ${end}, and it has ${size}`)
      const bytes = new Uint8Array(end - start)
      for (let done = 0; done < bytes.length; ) {
        const count = readSync(descriptor, bytes, done, bytes.length - done, start + done)
        if (count === 0) throw new Error(`it ended ${bytes.length - done} bytes early`)
        done += count
      }
      return bytes.buffer
    },
  }
}

/** Magic number at the end of a file whose footer is encrypted. */
const ENCRYPTED_MAGIC = 'PARE'

function requirePlainFooter(path: string, buffer: SyncBuffer): void {
  const magic = Buffer.from(buffer.slice(buffer.byteLength - ENCRYPTED_MAGIC.length)).toString('latin1')
  if (magic === ENCRYPTED_MAGIC) throw encrypted(path, 'its footer is encrypted')
}

/** The file is sound, but the feed has no keys. */
function encrypted(path: string, what: string): DscError {
  return new DscError('USAGE', `${path} is a Parquet file that the feed cannot read: ${what}`, {
    hint: 'write it without encryption; the feed takes no keys',
  })
}

function findGroups(path: string, metadata: FileMetaData, columns: ReadonlySet<string>): readonly RowGroup[] {
  const groups: RowGroup[] = []
  let firstRow = 0
  for (const [place, group] of metadata.row_groups.entries()) {
    const rowCount = Number(group.num_rows)
    if (!(rowCount >= 0)) throw new Error(`a row group of ${rowCount} rows`)
    let storedBytes = 0
    let unpackedBytes = 0
    for (const { meta_data: column, crypto_metadata, file_path } of group.columns) {
      if (crypto_metadata) throw encrypted(path, 'its columns are encrypted')
      if (!column) throw new Error('a column without metadata')
      if (file_path) throw new Error(`its columns lie in another file, ${file_path}`)
      if (!columns.has(column.path_in_schema[0] ?? '')) continue
      storedBytes += Number(column.total_compressed_size)
      const text = Number(column.size_statistics?.unencoded_byte_array_data_bytes ?? 0n)
      unpackedBytes += Math.max(Number(column.total_uncompressed_size), text + 2 * Number(column.num_values))
    }
    for (const name of columns) unpackedBytes += rowCount * (name.length + 1)
    if (rowCount > 0) groups.push({ place, firstRow, rowCount, storedBytes, unpackedBytes })
    firstRow += rowCount
  }
  if (firstRow !== Number(metadata.num_rows))
    throw new Error(`its footer says ${metadata.num_rows} rows, and its row groups have ${firstRow}`)
  return groups
}

/** Names the file in errors while it is parsed: its bytes may come from anybody. */
async function naming<T>(
  { path, where = '' }: { readonly path: string; readonly where?: string },
  act: () => Promise<T>,
): Promise<T> {
  try {
    return await act()
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException
    if (isDscError(cause) || code === 'EIO') throw cause
    const reason = cause instanceof Error ? cause.message : String(cause)
    throw new DscError('COPY_DAMAGED', `${path} is no Parquet file that can be read: ${where}${reason}`, {
      hint: 'fetch the file again (dsc verify --repair), or write it anew',
      cause,
    })
  }
}

/** Node requires at least one byte of room. */
const roomFor = (length: number) => Math.max(1, length)
