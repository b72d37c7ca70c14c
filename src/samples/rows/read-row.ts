import { DscError } from '../../failure/dsc-error.js'
import { ROW_EXTENSIONS, UTC_FLAG } from './row-extensions.js'

/**
 * A value of a row: a Parquet struct becomes an object, a map a list of pairs. Integers beyond 2^53 are bigint.
 * Decimals, dates (`2026-01-31`) and times (`13:05:00.000123`) are text; a timestamp is a Date, to the millisecond, in
 * UTC if it has no zone. Moments beyond what a Date can hold are text, with years as in ISO 8601 (`+292278-01-01`).
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

const DAY_NANOSECONDS = 86_400_000_000_000n
/** A Date holds this many milliseconds before and after 1970. */
const LARGEST_DATE_MS = 8.64e15
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
    if (type === ROW_EXTENSIONS.date) return formatDay(bytes.readInt32BE())
    const unit = NANOSECONDS[(bytes.readUInt8() & ~UTC_FLAG) as 0 | 1 | 2]
    const nanoseconds = bytes.readBigInt64BE(1) * unit
    if (type === ROW_EXTENSIONS.time) return formatTime(nanoseconds)
    const milliseconds = Number(floorDivide(nanoseconds, NANOSECONDS[0]))
    return Math.abs(milliseconds) <= LARGEST_DATE_MS ? new Date(milliseconds) : formatMoment(nanoseconds)
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

function formatMoment(nanoseconds: bigint): string {
  const day = floorDivide(nanoseconds, DAY_NANOSECONDS)
  return `${formatDay(Number(day))}T${formatTime(nanoseconds - day * DAY_NANOSECONDS)}`
}

/** Formats a day since 1970 in the Gregorian calendar; years outside of 0 to 9999 have a sign and six digits. */
function formatDay(day: number): string {
  const inEra = (((day + 719_468) % 146_097) + 146_097) % 146_097 // days since a March 1st that begins 400 years
  const era = Math.floor((day + 719_468) / 146_097)
  const leaps = Math.floor(inEra / 1460) - Math.floor(inEra / 36_524) + Math.floor(inEra / 146_096)
  const yearInEra = Math.floor((inEra - leaps) / 365)
  const inYear = inEra - 365 * yearInEra - Math.floor(yearInEra / 4) + Math.floor(yearInEra / 100)
  const march = Math.floor((5 * inYear + 2) / 153) // months since March
  const month = march < 10 ? march + 3 : march - 9
  const dayOfMonth = inYear - Math.floor((153 * march + 2) / 5) + 1
  return `${formatYear(era * 400 + yearInEra + (month <= 2 ? 1 : 0))}-${twoDigits(month)}-${twoDigits(dayOfMonth)}`
}

function formatYear(year: number): string {
  if (year >= 0 && year <= 9999) return String(year).padStart(4, '0')
  return `${year < 0 ? '-' : '+'}${String(Math.abs(year)).padStart(6, '0')}`
}

const twoDigits = (value: number) => String(value).padStart(2, '0')

/** Formats as `13:05:00`, with six fractional digits if they are not all zero, or nine. */
function formatTime(nanoseconds: bigint): string {
  const seconds = Number(nanoseconds / 1_000_000_000n)
  const all = String(nanoseconds % 1_000_000_000n).padStart(9, '0')
  const fraction = all.endsWith('000') ? all.slice(0, 6) : all
  const time = [seconds / 3600, (seconds / 60) % 60, seconds % 60].map((part) =>
    String(Math.floor(part)).padStart(2, '0'),
  )
  return `${time.join(':')}${fraction === '000000' ? '' : `.${fraction}`}`
}
