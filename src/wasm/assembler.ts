/**
 * The smallest assembler that the half-precision codec and the checksums need: it turns nested calls into the bytes of
 * a WebAssembly module, so that kernels are readable TypeScript and users need no toolchain. Macros are inlined by
 * construction, which matters: the engine does not inline calls inside a SIMD loop (measured 2 times slower).
 */

/** Instructions, as bytes; an expression leaves one value on the stack. */
export type Code = readonly number[]

const VALUE_TYPES = { i32: 0x7f, i64: 0x7e, f32: 0x7d, v128: 0x7b } as const
type ValueType = keyof typeof VALUE_TYPES

/** One exported function. Locals follow the parameters, in order. */
export interface WasmFunction {
  readonly name: string
  readonly parameters: readonly ValueType[]
  /** Type of the value that `body` leaves on the stack; default: none. */
  readonly result?: ValueType
  readonly locals: readonly ValueType[]
  readonly body: Code
}

/** Assembles a module that imports its memory as `env.memory` and exports `functions`. */
export function assembleModule(functions: readonly WasmFunction[]): Uint8Array<ArrayBuffer> {
  const types = functions.map(({ parameters, result }) => [
    0x60,
    ...vector(parameters.map((name) => [VALUE_TYPES[name]])),
    ...vector(result === undefined ? [] : [[VALUE_TYPES[result]]]),
  ])
  const memory = [...text('env'), ...text('memory'), 0x02, 0x00, 0x01]
  const exports = functions.map(({ name }, index) => [...text(name), 0x00, ...unsigned(index)])
  const bodies = functions.map(({ locals, body }) => {
    const declared = vector(locals.map((name) => [1, VALUE_TYPES[name]]))
    const code = [...declared, ...body, 0x0b]
    return [...unsigned(code.length), ...code]
  })
  return Uint8Array.from([
    ...[0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00], // "\0asm", version 1
    ...section(1, vector(types)),
    ...section(2, vector([memory])),
    ...section(3, vector(functions.map((_, index) => unsigned(index)))),
    ...section(7, vector(exports)),
    ...section(10, vector(bodies)),
  ])
}

/** Reads local `index`. */
export const get = (index: number): Code => [0x20, ...unsigned(index)]

/** Writes `value` into local `index`. */
export const set = (index: number, value: Code): Code => [...value, 0x21, ...unsigned(index)]

/** An i32 constant. */
export const i32 = (value: number): Code => [0x41, ...signed(value)]

/** Adds two i32. */
export const addI32 = (a: Code, b: Code): Code => [...a, ...b, 0x6a]

/** Subtracts the i32 `b` from `a`. */
export const subtractI32 = (a: Code, b: Code): Code => [...a, ...b, 0x6b]

/** Ands two i32. */
export const andI32 = (a: Code, b: Code): Code => [...a, ...b, 0x71]

/** Shifts an i32 to the left. */
export const shiftLeftI32 = (value: Code, bits: number): Code => [...value, ...i32(bits), 0x74]

/** Shifts an i32 to the right, filling with zeros. */
export const shiftRightI32 = (value: Code, bits: number): Code => [...value, ...i32(bits), 0x76]

/** Whether `a` is below `b`, both unsigned i32. */
export const isBelowI32 = (a: Code, b: Code): Code => [...a, ...b, 0x49]

/** The upper 32 bits of an i64, as i64. */
export const upperHalf = (value: Code): Code => [...value, 0x42, ...signed(32), 0x88]

/** The lower 32 bits of an i64, as i32. */
export const wrapI64 = (value: Code): Code => [...value, 0xa7]

/** Exclusive or of two i64. */
export const xorI64 = (a: Code, b: Code): Code => [...a, ...b, 0x85]

/** Loads an i64 from `address` + `offset`. */
export const loadI64 = (address: Code, offset = 0): Code => [...address, 0x29, 3, ...unsigned(offset)]

/** Runs `body`, and repeats it while `condition` holds afterwards. */
export const repeatWhile = (condition: Code, body: Code): Code => [
  ...[0x03, 0x40],
  ...body,
  ...condition,
  ...[0x0d, 0, 0x0b],
]

/** Repeats `body` until local `counter`, which starts at 0 and grows by `stride`, reaches local `limit`. */
export function repeat(
  { counter, limit, stride }: { readonly counter: number; readonly limit: number; readonly stride: number },
  body: Code,
): Code {
  const isDone = [...get(counter), ...get(limit), 0x4f]
  const next = set(counter, addI32(get(counter), i32(stride)))
  return [0x02, 0x40, 0x03, 0x40, ...isDone, 0x0d, 1, ...body, ...next, 0x0c, 0, 0x0b, 0x0b]
}

/** A SIMD instruction by number, after its operands. */
export const simd = (opcode: number, ...operands: readonly Code[]): Code => [
  ...operands.flat(),
  0xfd,
  ...unsigned(opcode),
]

/** Loads 16 bytes from `address` + `offset`. */
export const load = (address: Code, offset = 0): Code => [...simd(0x00, address), 0, ...unsigned(offset)]

/** Stores 16 bytes at `address` + `offset`. */
export const store = (address: Code, value: Code, offset = 0): Code => [
  ...simd(0x0b, address, value),
  0,
  ...unsigned(offset),
]

/** Loads 4 bytes from `address` + `offset` into the first lane of a vector, and zeros into the others. */
export const loadWord = (address: Code, offset: number): Code => [
  ...simd(0x5c, address),
  2,
  ...unsigned(offset),
]

/** Loads 4 bytes from `address` + `offset` into one lane of `vector`. */
export const loadLane = (
  address: Code,
  vector: Code,
  { offset, lane }: { readonly offset: number; readonly lane: number },
): Code => [...simd(0x56, address, vector), 2, ...unsigned(offset), lane]

/** Shifts each 32-bit lane by constant `bits` to the left, or to the right if below 0, filling with zeros. */
export const shiftLanes = (vector: Code, bits: number): Code =>
  simd(bits < 0 ? 0xad : 0xab, vector, i32(Math.abs(bits)))

/** A vector with the same 32 bits in all four lanes. */
export function splatBits(bits: number): Code {
  const lane = [bits & 0xff, (bits >>> 8) & 0xff, (bits >>> 16) & 0xff, (bits >>> 24) & 0xff]
  return [...simd(0x0c), ...lane, ...lane, ...lane, ...lane]
}

function section(id: number, bytes: Code): Code {
  return [id, ...unsigned(bytes.length), ...bytes]
}

function vector(items: readonly Code[]): Code {
  return [...unsigned(items.length), ...items.flat()]
}

function text(value: string): Code {
  return vector([...Buffer.from(value)].map((byte) => [byte]))
}

function unsigned(value: number): Code {
  const bytes: number[] = []
  let rest = value >>> 0
  do {
    bytes.push((rest & 0x7f) | (rest > 0x7f ? 0x80 : 0))
    rest >>>= 7
  } while (rest > 0)
  return bytes
}

function signed(value: number): Code {
  const bytes: number[] = []
  let rest = value | 0
  for (;;) {
    const byte = rest & 0x7f
    rest >>= 7
    if ((rest === 0 && !(byte & 0x40)) || (rest === -1 && byte & 0x40)) return [...bytes, byte]
    bytes.push(byte | 0x80)
  }
}
