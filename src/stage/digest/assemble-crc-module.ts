/** Bytes that one turn of the loop takes; there is a table for each. */
export const STEP_BYTES = 16

const I32 = 0x7f
const I64 = 0x7e
/** Variables of `step`: its parameters, then two locals. */
const CRC = 0
const FROM = 1
const TO = 2
const LOW = 3
const HIGH = 4

const get = (variable: number) => [0x20, variable]
const set = (variable: number) => [0x21, variable]
const tee = (variable: number) => [0x22, variable]
const i32Constant = (value: number) => [0x41, ...signed(value)]
const i64Constant = (value: number) => [0x42, ...signed(value)]
const i64Load = (offset: number) => [0x29, 3, ...unsigned(offset)]
const I32_ADD = 0x6a
const I32_AND = 0x71
const I32_SHIFT_LEFT = 0x74
const I32_SHIFT_RIGHT = 0x76
const I32_LESS = 0x49
const I64_XOR = 0x85
const I64_SHIFT_RIGHT = 0x88
const I32_WRAP = 0xa7
const LOOP = [0x03, 0x40]
const BRANCH_IF = [0x0d, 0]
const END = 0x0b

/**
 * A WebAssembly module with one function, `step(crc, from, to)`, over the memory `dsc.memory`: carries a reflected
 * CRC of up to 64 bits on over bytes `from` to `to`, a multiple of 16 and not none. Tables of 256 64-bit entries lie
 * at address 0. JavaScript has no 64-bit integers that are quick; this is four times as fast as pairs of 32 bits
 * (2.4 against 0.6 GB/s).
 */
export function assembleCrcModule(): Uint8Array<ArrayBuffer> {
  const body = [
    ...LOOP,
    ...[...get(CRC), ...get(FROM), ...i64Load(0), I64_XOR, ...set(LOW)],
    ...[...get(FROM), ...i64Load(8), ...set(HIGH)],
  ]
  const entries = Array.from({ length: STEP_BYTES }, (_, byte) =>
    lookUp(byte < 8 ? LOW : HIGH, byte % 8, STEP_BYTES - 1 - byte),
  )
  body.push(
    ...sum(entries),
    ...set(CRC),
    ...[...get(FROM), ...i32Constant(STEP_BYTES), I32_ADD, ...tee(FROM), ...get(TO), I32_LESS, ...BRANCH_IF],
    END, // of the loop
    ...get(CRC),
    END,
  )
  const code = [1, 2, I64, ...body] // one group of locals: two of 64 bits
  return Uint8Array.from([
    ...[0x00, 0x61, 0x73, 0x6d, 1, 0, 0, 0], // "\0asm", version 1
    ...section(1, [1, 0x60, 3, I64, I32, I32, 1, I64]), // the type of `step`
    ...section(2, [1, ...text('dsc'), ...text('memory'), 2, 0, 1]), // memory of at least one page
    ...section(3, [1, 0]),
    ...section(7, [1, ...text('step'), 0, 0]),
    ...section(10, [1, ...unsigned(code.length), ...code]),
  ])
}

/** Adds pairs, then pairs of those: the next step waits for four additions instead of for sixteen in a row. */
function sum(terms: readonly (readonly number[])[]): readonly number[] {
  if (terms.length === 1) return terms[0]!
  const half = terms.length / 2
  return [...sum(terms.slice(0, half)), ...sum(terms.slice(half)), I64_XOR]
}

/** Pushes the entry of `table` for one byte of a variable. Entries have 8 bytes, hence the 3 bits. */
function lookUp(variable: number, byte: number, table: number): number[] {
  const bits = (byte % 4) * 8
  return [
    ...get(variable),
    ...(byte < 4 ? [] : [...i64Constant(32), I64_SHIFT_RIGHT]),
    I32_WRAP,
    ...(bits === 0 ? [...i32Constant(3), I32_SHIFT_LEFT] : [...i32Constant(bits - 3), I32_SHIFT_RIGHT]),
    ...[...i32Constant(255 * 8), I32_AND],
    ...i64Load(table * 256 * 8),
  ]
}

function section(id: number, content: readonly number[]): number[] {
  return [id, ...unsigned(content.length), ...content]
}

function text(word: string): number[] {
  return [word.length, ...Buffer.from(word, 'latin1')]
}

/** LEB128, as WebAssembly writes numbers. */
function unsigned(value: number): number[] {
  const bytes: number[] = []
  for (let left = value; ; left >>>= 7) {
    if (left < 128) return [...bytes, left]
    bytes.push((left & 127) | 128)
  }
}

function signed(value: number): number[] {
  const bytes: number[] = []
  for (let left = value; ; left >>= 7) {
    if (left >= -64 && left < 64) return [...bytes, left & 127]
    bytes.push((left & 127) | 128)
  }
}
