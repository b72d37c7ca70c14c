import { DscError } from '../../failure/dsc-error.js'
import { ROW_EXTENSIONS, UTC_FLAG } from './row-extensions.js'

/**
 * A value of a row: a Parquet struct becomes an object, a map a list of pairs. Integers beyond 2^53 are bigint.
 * Decimals, dates (`2026-01-31`) and times (`13:05:00.000123`) are text; a timestamp is a Date, to the millisecond, in
 * UTC if it has no zone.
 */
export type RowValue =
  | null
  | boolean
  | number
  | bigint
  | string
  | Date
  | Uint8Array
  | readonly RowValue[]
  | { readonly [name: string]: RowValue }

const DAY_MS = 86_400_000
const NANOSECONDS = [1_000_000n, 1_000n, 1n] as const

/** Reads the columns of a Parquet row, by name, from the bytes of a sample. Throws FEED_PROTOCOL for other bytes. */
export function readRow(data: Uint8Array): { readonly [column: string]: RowValue } {
  const reader = new RowReader(data)
  try {
    const row = reader.value()
    if (isRow(row) && reader.at === data.length) return row
  } catch (error) {
    if (!(error instanceof RangeError)) throw error // past the end of the bytes
  }
  throw new DscError('FEED_PROTOCOL', 'a sample is no row of a Parquet file', {
    hint: 'samples of other formats have data, and no columns',
  })
}

function isRow(value: RowValue): value is { readonly [name: string]: RowValue } {
  return value !== null && Object.getPrototypeOf(value) === null
}

/** Reads the MessagePack that `MessagePackWriter` writes. */
class RowReader {
  readonly #bytes: Buffer
  at = 0

  constructor(data: Uint8Array) {
    this.#bytes = Buffer.from(data.buffer, data.byteOffset, data.length)
  }

  value(): RowValue {
    const tag = this.#bytes.readUInt8(this.at++)
    if (tag < 0x80) return tag
    if (tag >= 0xe0) return tag - 0x100
    if (tag < 0x90) return this.#map(tag & 0xf)
    if (tag < 0xa0) return this.#list(tag & 0xf)
    if (tag < 0xc0) return this.#take(tag & 0x1f).toString()
    if (tag === 0xc2 || tag === 0xc3) return tag === 0xc3
    return tag === 0xc0 ? null : this.#tagged(tag)
  }

  #tagged(tag: number): RowValue {
    if (tag >= 0xc4 && tag <= 0xc6) return Uint8Array.from(this.#take(this.#size(tag - 0xc4)))
    if (tag >= 0xc7 && tag <= 0xc9) return this.#extension(this.#size(tag - 0xc7))
    if (tag >= 0xd9 && tag <= 0xdb) return this.#take(this.#size(tag - 0xd9)).toString()
    if (tag === 0xdd) return this.#list(this.#size(2))
    if (tag === 0xdf) return this.#map(this.#size(2))
    return this.#number(tag)
  }

  #number(tag: number): number | bigint {
    switch (tag) {
      case 0xca:
        return this.#take(4).readFloatBE()
      case 0xcb:
        return this.#take(8).readDoubleBE()
      case 0xcc:
        return this.#take(1).readUInt8()
      case 0xce:
        return this.#take(4).readUInt32BE()
      case 0xcf:
        return narrow(this.#take(8).readBigUInt64BE())
      case 0xd2:
        return this.#take(4).readInt32BE()
      case 0xd3:
        return narrow(this.#take(8).readBigInt64BE())
      default:
        throw new RangeError(`tag ${tag}`)
    }
  }

  #map(length: number): RowValue {
    const members: Record<string, RowValue> = Object.create(null) // a column may be named __proto__
    for (let i = 0; i < length; i++) {
      const name = String(this.value())
      members[name] = this.value()
    }
    return members
  }

  #list(length: number): RowValue {
    const values: RowValue[] = []
    for (let i = 0; i < length; i++) values.push(this.value())
    return values
  }

  #extension(length: number): RowValue {
    const type = this.#bytes.readUInt8(this.at++)
    const bytes = this.#take(length)
    if (type === ROW_EXTENSIONS.decimal) return bytes.toString('latin1')
    if (type === ROW_EXTENSIONS.date) return new Date(bytes.readInt32BE() * DAY_MS).toISOString().slice(0, 10)
    const unit = NANOSECONDS[(bytes.readUInt8() & ~UTC_FLAG) as 0 | 1 | 2]
    const nanoseconds = bytes.readBigInt64BE(1) * unit
    if (type === ROW_EXTENSIONS.time) return formatTime(nanoseconds)
    return new Date(Number(floorDivide(nanoseconds, NANOSECONDS[0])))
  }

  /** Reads a length of 1, 2 or 4 bytes. */
  #size(power: number): number {
    const bytes = 2 ** power
    return this.#take(bytes).readUIntBE(0, bytes)
  }

  #take(length: number): Buffer {
    const end = this.at + length
    if (end > this.#bytes.length) throw new RangeError(`${length} bytes at ${this.at}`)
    const bytes = this.#bytes.subarray(this.at, end)
    this.at = end
    return bytes
  }
}

function narrow(value: bigint): number | bigint {
  const number = Number(value)
  return Number.isSafeInteger(number) ? number : value
}

function floorDivide(value: bigint, by: bigint): bigint {
  return value / by - (value % by < 0n ? 1n : 0n)
}

/** Formats as `13:05:00`, with six fractional digits if they are not all zero. */
function formatTime(nanoseconds: bigint): string {
  const microseconds = nanoseconds / 1000n
  const seconds = Number(microseconds / 1_000_000n)
  const fraction = String(microseconds % 1_000_000n).padStart(6, '0')
  const time = [seconds / 3600, (seconds / 60) % 60, seconds % 60].map((part) =>
    String(Math.floor(part)).padStart(2, '0'),
  )
  return `${time.join(':')}${fraction === '000000' ? '' : `.${fraction}`}`
}
