import {
  addI32,
  type Code,
  get,
  i32,
  load,
  repeat,
  set,
  simd,
  store,
  type WasmFunction,
} from '../wasm/assembler.js'

// Lane-wise instructions by their number in the WebAssembly SIMD encoding.
const splatFloat = (a: Code) => simd(0x13, a)
const addFloats = (a: Code, b: Code) => simd(0xe4, a, b)
const multiplyFloats = (a: Code, b: Code) => simd(0xe6, a, b)
const floor = (a: Code) => simd(0x68, a)
const toIntegers = (a: Code) => simd(0xf8, a) // saturates; NaN becomes 0
const toFloats = (a: Code) => simd(0xfa, a)
const narrowTo16 = (low: Code, high: Code) => simd(0x85, low, high)
const narrowTo8 = (low: Code, high: Code) => simd(0x65, low, high)
const widenLow8 = (a: Code) => simd(0x87, a)
const widenHigh8 = (a: Code) => simd(0x88, a)
const widenLow16 = (a: Code) => simd(0xa7, a)
const widenHigh16 = (a: Code) => simd(0xa8, a)
const max8 = (a: Code, b: Code) => simd(0x78, a, b)
const splatByte = (a: number) => simd(0x0f, i32(a))

// Parameters: two addresses, the number of values (a multiple of 16), a factor, and for encoding a third address.
const [A, B, COUNT, FACTOR, RANDOM] = [0, 1, 2, 3, 4]

function kernel(
  {
    name,
    strides,
    hasRandom = false,
  }: { name: string; strides: readonly [number, number]; hasRandom?: boolean },
  body: Code,
): WasmFunction {
  const counter = hasRandom ? 5 : 4
  const advance = [...strides, ...(hasRandom ? [0, 0, 64] : [])].flatMap((stride, address) =>
    stride === 0 ? [] : set(address, addI32(get(address), i32(stride))),
  )
  return {
    name,
    parameters: ['i32', 'i32', 'i32', 'f32', ...(hasRandom ? (['i32'] as const) : [])],
    locals: ['i32'],
    body: repeat({ counter, limit: COUNT, stride: 16 }, [...body, ...advance]),
  }
}

/** Four floats from each quarter of 16 signed bytes, times the factor. */
function widened(address: number): readonly Code[] {
  const bytes = load(get(address))
  return [widenLow8(bytes), widenHigh8(bytes)]
    .flatMap((half) => [widenLow16(half), widenHigh16(half)])
    .map((integers) => multiplyFloats(toFloats(integers), splatFloat(get(FACTOR))))
}

const rounded = (offset: number) => {
  const scaled = multiplyFloats(load(get(A), offset), splatFloat(get(FACTOR)))
  return toIntegers(floor(addFloats(scaled, load(get(RANDOM), offset))))
}

/** Kernels for values that are signed bytes on the wire: 16 per turn. Source first for encode and decode. */
export const INT8_KERNELS: readonly WasmFunction[] = [
  kernel(
    { name: 'encodeInt8', strides: [64, 16], hasRandom: true },
    store(
      get(B),
      max8(
        narrowTo8(narrowTo16(rounded(0), rounded(16)), narrowTo16(rounded(32), rounded(48))),
        splatByte(-127),
      ),
    ),
  ),
  kernel(
    { name: 'decodeInt8', strides: [16, 64] },
    widened(A).flatMap((floats, at) => store(get(B), floats, at * 16)),
  ),
  kernel(
    { name: 'accumulateInt8', strides: [64, 16] },
    widened(B).flatMap((floats, at) => store(get(A), addFloats(load(get(A), at * 16), floats), at * 16)),
  ),
]
