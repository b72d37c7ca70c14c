import { MessagePackWriter } from './message-pack.js'
import { ROW_EXTENSIONS, UTC_FLAG } from './row-extensions.js'
import { type RowField, type ScalarKind, storedName, TIME_UNITS, type TimeUnit } from './row-fields.js'

/** Writes a value; null and undefined are nil. */
type Encode = (writer: MessagePackWriter, value: unknown) => void

/** A column: its key in a row, and the encoder of its values. */
interface ColumnEncoder {
  /** A MessagePack string. */
  readonly key: Uint8Array
  readonly encode: Encode
}

/** Makes the encoders of a row's columns: a row is a map from column names to values. */
export function columnEncoders(fields: readonly RowField[]): readonly ColumnEncoder[] {
  return fields.map((field) => ({ key: packedKey(field.name), encode: encoderOf(field) }))
}

function packedKey(name: string): Uint8Array {
  const writer = new MessagePackWriter()
  writer.string(Buffer.from(name))
  return Uint8Array.from(writer.written())
}

function encoderOf(field: RowField): Encode {
  const encode = valueEncoderOf(field)
  return (writer, value) => {
    if (value === null || value === undefined) writer.nil()
    else encode(writer, value)
  }
}

function valueEncoderOf(field: RowField): Encode {
  switch (field.kind) {
    case 'scalar':
      return scalarEncoder(field.scalar)
    case 'list':
      return listEncoder(encoderOf(field.element))
    case 'struct':
      return structEncoder(field.fields)
    case 'map':
      return mapEncoder(field)
  }
}

function listEncoder(encode: Encode): Encode {
  return (writer, value) => {
    const values = value as ArrayLike<unknown>
    writer.array(values.length)
    for (let i = 0; i < values.length; i++) encode(writer, values[i])
  }
}

function structEncoder(fields: readonly RowField[]): Encode {
  const members = fields.map((field) => ({
    name: storedName(field.name),
    key: packedKey(field.name),
    encode: encoderOf(field),
  }))
  return (writer, value) => {
    const struct = value as Readonly<Record<string, unknown>>
    writer.map(members.length)
    for (const { name, key, encode } of members) {
      writer.raw(key)
      encode(writer, struct[name])
    }
  }
}

/** Encodes a map as a list of pairs, because keys need not be strings or unique. */
function mapEncoder({ entries, key, value }: Extract<RowField, { kind: 'map' }>): Encode {
  const [entriesName, keyName, valueName] = [entries, key.name, value.name].map(storedName) as [
    string,
    string,
    string,
  ]
  const encodeKey = encoderOf(key)
  const encodeValue = encoderOf(value)
  return (writer, map) => {
    const list = (map as Readonly<Record<string, unknown>>)[entriesName] as Readonly<
      Record<string, unknown>
    >[]
    writer.array(list.length)
    for (const entry of list) {
      writer.array(2)
      encodeKey(writer, entry[keyName])
      encodeValue(writer, entry[valueName])
    }
  }
}

function scalarEncoder(scalar: ScalarKind): Encode {
  switch (scalar.is) {
    case 'boolean':
      return (writer, value) => writer.boolean(value as boolean)
    case 'integer':
      return (writer, value) => writer.integer(value as number)
    case 'uint32':
      return (writer, value) => writer.integer((value as number) >>> 0)
    case 'int64':
      return (writer, value) => writer.bigInteger(value as bigint)
    case 'uint64':
      return (writer, value) => writer.bigInteger(BigInt.asUintN(64, value as bigint))
    case 'float32':
      return (writer, value) => writer.float32(value as number)
    case 'float64':
      return (writer, value) => writer.float64(value as number)
    case 'float16':
      return (writer, value) => writer.float32(halfToNumber(value as Uint8Array))
    case 'string':
      return (writer, value) => writer.string(value as Uint8Array)
    case 'bytes':
      return (writer, value) => writer.binary(value as Uint8Array)
    default:
      return extensionEncoder(scalar)
  }
}

type ExtensionKind = Extract<ScalarKind, { is: 'decimal' | 'date' | 'time' | 'timestamp' | 'int96' }>

function extensionEncoder(scalar: ExtensionKind): Encode {
  const { decimal, date, time, timestamp } = ROW_EXTENSIONS
  switch (scalar.is) {
    case 'decimal':
      return (writer, value) =>
        writer.extension(decimal, Buffer.from(formatDecimal(unscaled(value), scalar.scale)))
    case 'date': {
      const bytes = Buffer.alloc(4)
      return (writer, value) => {
        bytes.writeInt32BE(value as number)
        writer.extension(date, bytes)
      }
    }
    case 'time':
      return instantEncoder(time, scalar.unit)
    case 'timestamp':
      return instantEncoder(timestamp, scalar.unit, scalar.isUtc ? UTC_FLAG : 0)
    case 'int96':
      return int96Encoder(timestamp)
  }
}

function instantEncoder(type: number, unit: TimeUnit, flags = 0): Encode {
  const bytes = Buffer.alloc(9)
  bytes[0] = TIME_UNITS.indexOf(unit) | flags
  return (writer, value) => {
    bytes.writeBigInt64BE(BigInt.asIntN(64, BigInt(value as number | bigint)), 1)
    writer.extension(type, bytes)
  }
}

/** Milliseconds, micro- and nanoseconds in nanoseconds, in the order of `TIME_UNITS`. */
const UNIT_NANOSECONDS = [1_000_000n, 1_000n, 1n] as const

/**
 * INT96 has nanoseconds of any year, and a row 64 bits: a moment beyond 1677 to 2262, such as the 9999-12-31 that Spark
 * writes for "never", is written in microseconds, or in milliseconds beyond the year 294,000.
 */
function int96Encoder(type: number): Encode {
  const bytes = Buffer.alloc(9)
  return (writer, value) => {
    for (let unit = TIME_UNITS.length - 1; unit >= 0; unit--) {
      const moment = floorDivide(value as bigint, UNIT_NANOSECONDS[unit]!)
      if (BigInt.asIntN(64, moment) !== moment) continue
      bytes[0] = unit
      bytes.writeBigInt64BE(moment, 1)
      break
    }
    writer.extension(type, bytes)
  }
}

function floorDivide(value: bigint, by: bigint): bigint {
  return value / by - (value % by < 0n ? 1n : 0n)
}

/** Reads the integer of a decimal from an integer, or from big-endian bytes in two's complement. */
function unscaled(value: unknown): bigint {
  if (!(value instanceof Uint8Array)) return BigInt(value as number | bigint)
  if (value.length === 0) return 0n
  const bits = BigInt(`0x${Buffer.from(value).toString('hex')}`)
  return BigInt.asIntN(value.length * 8, bits)
}

/** Formats `12345` with scale 2 as `123.45`; a negative scale adds an exponent. */
function formatDecimal(value: bigint, scale: number): string {
  if (scale <= 0) return `${value}${scale === 0 ? '' : `E+${-scale}`}`
  const sign = value < 0n ? '-' : ''
  const digits = (value < 0n ? -value : value).toString().padStart(scale + 1, '0')
  return `${sign}${digits.slice(0, -scale)}.${digits.slice(-scale)}`
}

/** IEEE 754 half precision, little endian. */
function halfToNumber(bytes: Uint8Array): number {
  const bits = bytes[0]! | (bytes[1]! << 8)
  const sign = bits & 0x8000 ? -1 : 1
  const exponent = (bits >> 10) & 0x1f
  const fraction = bits & 0x3ff
  if (exponent === 0) return sign * 2 ** -24 * fraction
  if (exponent === 0x1f) return fraction === 0 ? sign * Number.POSITIVE_INFINITY : Number.NaN
  return sign * 2 ** (exponent - 15) * (1 + fraction / 1024)
}
