/**
 * The smallest assembler that the codec needs: it turns nested calls into the bytes of a WebAssembly module,
 * so that kernels are readable TypeScript and users need no toolchain. Macros are inlined here by
 * construction, which matters: the engine does not inline calls inside a SIMD loop (measured 2 times slower).
 */

/** Instructions, as bytes; an expression leaves one value on the stack. */
export type Code = readonly number[]

const VALUE_TYPES = { i32: 0x7f, f32: 0x7d, v128: 0x7b } as const
export type ValueType = keyof typeof VALUE_TYPES

/** One exported function without results. Locals follow the parameters, in order. */
export interface WasmFunction {
  readonly name: string
  readonly parameters: readonly ValueType[]
  readonly locals: readonly ValueType[]
  readonly body: Code
}

/** Assembles a module that imports its memory as `env.memory` and exports `functions`. */
export function assembleModule(functions: readonly WasmFunction[]): Uint8Array<ArrayBuffer> {
  const types = functions.map(({ parameters }) => [
    0x60,
    ...vector(parameters.map((name) => [VALUE_TYPES[name]])),
    0,
  ])
  const memory = [...text('env'), ...text('memory'), 0x02, 0x00, 0x01]
  const exports = functions.map(({ name }, index) => [...text(name), 0x00, ...unsigned(index)])
  const bodies = functions.map(({ locals, body }) => {
    const declared = vector(locals.map((name) => [1, VALUE_TYPES[name]]))
    const code = [...declared, ...body, 0x0b]
    return [...unsigned(code.length), ...code]
  })
  return Uint8Array.from([
    ...[0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00],
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

/** Repeats `body` until local `counter`, which starts at 0 and grows by `stride`, reaches local `limit`. */
export function repeat(counter: number, limit: number, stride: number, body: Code): Code {
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
