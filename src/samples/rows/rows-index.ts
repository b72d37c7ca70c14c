import { readFileSync, statSync } from 'node:fs'
import { crc32 } from 'node:zlib'
import { unlessCode } from '../../failure/unless-code.js'

/** Identifies the Parquet file of a rows file; if it differs, the rows are made again. */
export interface RowsOrigin {
  /** Size of the Parquet file, in bytes. */
  readonly size: number
  readonly mtimeMs: number
}

/** Lengths of the rows in a rows file: one after the other, in the order of the Parquet file. */
export interface RowsIndex {
  /** Length of each row, in bytes. */
  readonly lengths: Uint32Array
  readonly crcs: Uint32Array
  /** Size of the rows file, in bytes. */
  readonly rowsBytes: number
}

const MAGIC = 'DSCROWS1'
const HEADER_BYTES = 40
const CHECKSUM_BYTES = 4

/**
 * Formats an index for the disk, little endian: magic; number of rows, bytes of the rows file, size and modification
 * time of the Parquet file (float64 each); all lengths, all CRC-32 (uint32); CRC-32 of everything before it.
 */
export function formatRowsIndex({ lengths, crcs, rowsBytes }: RowsIndex, origin: RowsOrigin): Buffer {
  const bytes = Buffer.alloc(HEADER_BYTES + 8 * lengths.length + CHECKSUM_BYTES)
  bytes.write(MAGIC, 'latin1')
  for (const [i, value] of [lengths.length, rowsBytes, origin.size, origin.mtimeMs].entries())
    bytes.writeDoubleLE(value, 8 + 8 * i)
  bytes.set(bytesOf(lengths), HEADER_BYTES)
  bytes.set(bytesOf(crcs), HEADER_BYTES + 4 * lengths.length)
  const end = bytes.length - CHECKSUM_BYTES
  bytes.writeUInt32LE(crc32(bytes.subarray(0, end)), end)
  return bytes
}

/** Reads the index of a complete rows file made from `origin`, or of rows that are not kept; undefined without one. */
export function readRowsIndex(
  paths: { readonly rows: string | Buffer | undefined; readonly index: string | Buffer },
  origin: RowsOrigin,
): RowsIndex | undefined {
  const bytes = unlessCode(['ENOENT'], () => readFileSync(paths.index))
  if (!bytes || bytes.length < HEADER_BYTES + CHECKSUM_BYTES) return undefined
  const end = bytes.length - CHECKSUM_BYTES
  if (bytes.toString('latin1', 0, 8) !== MAGIC || bytes.readUInt32LE(end) !== crc32(bytes.subarray(0, end)))
    return undefined
  const [count, rowsBytes, size, mtimeMs] = [8, 16, 24, 32].map((at) => bytes.readDoubleLE(at))
  if (size !== origin.size || mtimeMs !== origin.mtimeMs || end !== HEADER_BYTES + 8 * count!)
    return undefined
  if (paths.rows !== undefined && statSync(paths.rows, { throwIfNoEntry: false })?.size !== rowsBytes)
    return undefined
  const column = (at: number) => new Uint32Array(bytes.buffer.slice(at, at + 4 * count!))
  const first = bytes.byteOffset + HEADER_BYTES
  return { lengths: column(first), crcs: column(first + 4 * count!), rowsBytes: rowsBytes! }
}

function bytesOf(column: Uint32Array): Uint8Array {
  return new Uint8Array(column.buffer, column.byteOffset, column.byteLength)
}
