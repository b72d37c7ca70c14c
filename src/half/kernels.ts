import {
  addI32,
  type Code,
  get,
  i32,
  load,
  repeat,
  set,
  simd,
  splatBits,
  store,
  type WasmFunction,
} from '../wasm/assembler.js'

// Lane-wise instructions by their number in the WebAssembly SIMD encoding.
const and = (a: Code, b: Code) => simd(0x4e, a, b)
const or = (a: Code, b: Code) => simd(0x50, a, b)
const xor = (a: Code, b: Code) => simd(0x51, a, b)
const select = (mask: Code, a: Code, b: Code) => simd(0x52, a, b, mask)
const less = (a: Code, b: Code) => simd(0x39, a, b)
const greater = (a: Code, b: Code) => simd(0x3b, a, b)
const add = (a: Code, b: Code) => simd(0xae, a, b)
const subtract = (a: Code, b: Code) => simd(0xb1, a, b)
const shiftLeft = (a: Code, bits: number) => simd(0xab, a, [0x41, bits])
const shiftRight = (a: Code, bits: number) => simd(0xad, a, [0x41, bits])
const addFloats = (a: Code, b: Code) => simd(0xe4, a, b)
const multiplyFloats = (a: Code, b: Code) => simd(0xe6, a, b)
const splatFloat = (a: Code) => simd(0x13, a)
const narrow = (low: Code, high: Code) => simd(0x86, low, high)
const widenLow = (a: Code) => simd(0xa9, a)
const widenHigh = (a: Code) => simd(0xaa, a)
const max16 = (a: Code, b: Code) => simd(0x99, a, b)
const max32 = (a: Code, b: Code) => simd(0xb9, a, b)

/** The locals of one kernel: three for a conversion, one for a maximum, and one per constant on its first use. */
interface Locals {
  readonly raw: number
  readonly sign: number
  readonly magnitude: number
  readonly maximum: number
  /** The same 32 bits in all lanes. Kept in a register: inside the loop the engine would rebuild it every time. */
  readonly constant: (bits: number) => Code
}

/** How four lanes of a narrow type become floats and back. */
interface NarrowType {
  readonly toFloats: (bits: Code, locals: Locals) => Code
  readonly fromFloats: (floats: Code, locals: Locals) => Code
}

/** IEEE half: exact to floats, round to nearest even back, overflow to inf, NaN stays NaN. */
const HALF: NarrowType = {
  toFloats(bits, { raw, magnitude, constant }) {
    // A half's bits moved to a float's place, times 2¹¹²: right for normal and subnormal halves alike.
    const finite = multiplyFloats(shiftLeft(get(magnitude), 13), constant((127 + 112) << 23))
    const isSpecial = greater(get(magnitude), constant(0x7bff))
    return [
      ...set(raw, bits),
      ...set(magnitude, and(get(raw), constant(0x7fff))),
      ...or(or(finite, and(isSpecial, constant(0x7f800000))), shiftLeft(xor(get(raw), get(magnitude)), 16)),
    ]
  },
  fromFloats(floats, { raw, sign, magnitude, constant }) {
    // Adding this power of two aligns a subnormal half's bits at the bottom, rounded by the addition itself.
    const align = constant((127 - 15 + (23 - 10) + 1) << 23)
    const subnormal = subtract(addFloats(get(magnitude), align), align)
    const isOdd = and(shiftRight(get(magnitude), 13), constant(1))
    const rebias = constant(((15 - 127) << 23) + 0xfff)
    const normal = shiftRight(add(add(get(magnitude), rebias), isOdd), 13)
    const isNan = greater(get(magnitude), constant(0x7f800000))
    // Beyond the largest half every value is inf; a NaN keeps one more bit.
    const special = or(constant(0x7c00), and(isNan, constant(0x0200)))
    const finite = select(less(get(magnitude), constant(113 << 23)), subnormal, normal)
    const isSpecial = greater(get(magnitude), constant(((127 + 16) << 23) - 1))
    return [
      ...set(raw, floats),
      ...set(magnitude, and(get(raw), constant(0x7fffffff))),
      ...set(sign, shiftRight(xor(get(raw), get(magnitude)), 16)),
      ...or(select(isSpecial, special, finite), get(sign)),
    ]
  },
}

/** bfloat16: the upper half of a float, rounded to nearest even. */
const BRAIN: NarrowType = {
  toFloats: (bits) => shiftLeft(bits, 16),
  fromFloats(floats, { raw, constant }) {
    const isOdd = and(shiftRight(get(raw), 16), constant(1))
    const rounded = shiftRight(add(add(get(raw), constant(0x7fff)), isOdd), 16)
    const isNan = greater(and(get(raw), constant(0x7fffffff)), constant(0x7f800000))
    const nan = or(shiftRight(get(raw), 16), constant(0x40))
    return [...set(raw, floats), ...select(isNan, nan, rounded)]
  },
}

// Parameters: two addresses (or one and a place for the result), a count that is a multiple of 8, a factor.
const A = 0
const B = 1
const COUNT = 2
const FACTOR = 3
/** The local `maximum` of a kernel without a factor: after the counter come raw, sign and magnitude. */
const MAXIMUM_WITHOUT_FACTOR = 7

/** A kernel's name, how far each address moves per turn, and whether it takes a factor. */
interface KernelShape {
  readonly name: string
  readonly strides: readonly [number, number]
  readonly hasFactor?: boolean
}

function kernel(
  { name, strides, hasFactor = false }: KernelShape,
  build: (locals: Locals) => Code,
): WasmFunction {
  const counter = hasFactor ? 4 : 3
  const first = counter + 1
  const constants = new Map<number, number>()
  const constant = (bits: number) => {
    const local = constants.get(bits) ?? first + 4 + constants.size
    constants.set(bits, local)
    return get(local)
  }
  const body = build({ raw: first, sign: first + 1, magnitude: first + 2, maximum: first + 3, constant })
  const advance = strides.flatMap((stride, address) =>
    stride === 0 ? [] : set(address, addI32(get(address), i32(stride))),
  )
  return {
    name,
    parameters: ['i32', 'i32', 'i32', ...(hasFactor ? (['f32'] as const) : [])],
    locals: ['i32', ...Array<'v128'>(4 + constants.size).fill('v128')],
    body: [
      ...[...constants].flatMap(([bits, local]) => set(local, splatBits(bits))),
      ...repeat({ counter, limit: COUNT, stride: 8 }, [...body, ...advance]),
    ],
  }
}

function narrowKernels(suffix: string, { toFloats, fromFloats }: NarrowType): WasmFunction[] {
  const factor = splatFloat(get(FACTOR))
  return [
    kernel({ name: `encode${suffix}`, strides: [32, 16], hasFactor: true }, (locals) => {
      const half = (offset: number) => fromFloats(multiplyFloats(load(get(A), offset), factor), locals)
      return store(get(B), narrow(half(0), half(16)))
    }),
    kernel({ name: `decode${suffix}`, strides: [16, 32], hasFactor: true }, (locals) => [
      ...store(get(B), multiplyFloats(toFloats(widenLow(load(get(A))), locals), factor)),
      ...store(get(B), multiplyFloats(toFloats(widenHigh(load(get(A))), locals), factor), 16),
    ]),
    kernel({ name: `add${suffix}`, strides: [16, 32], hasFactor: true }, (locals) => {
      const sum = (widen: (a: Code) => Code, offset: number) => {
        const scaled = multiplyFloats(load(get(B), offset), factor)
        return fromFloats(addFloats(toFloats(widen(load(get(A))), locals), scaled), locals)
      }
      return store(get(A), narrow(sum(widenLow, 0), sum(widenHigh, 16)))
    }),
    kernel({ name: `accumulate${suffix}`, strides: [32, 16] }, (locals) => [
      ...store(get(A), addFloats(load(get(A)), toFloats(widenLow(load(get(B))), locals))),
      ...store(get(A), addFloats(load(get(A), 16), toFloats(widenHigh(load(get(B))), locals)), 16),
    ]),
  ]
}

interface MaximumShape {
  /** All bits of a value but its sign, in 32 bits. */
  readonly magnitudeMask: number
  readonly max: typeof max16
  /** Offsets of the vectors that one turn processes, in bytes. */
  readonly offsets: readonly number[]
}

/** Keeps the lane-wise maximum of the magnitudes' bits and leaves it at the second address. */
function maximum(name: string, { magnitudeMask, max, offsets }: MaximumShape): WasmFunction {
  const loop = kernel({ name, strides: [offsets.length * 16, 0] }, (locals) =>
    offsets.flatMap((offset) =>
      set(
        locals.maximum,
        max(get(locals.maximum), and(load(get(A), offset), locals.constant(magnitudeMask))),
      ),
    ),
  )
  return { ...loop, body: [...loop.body, ...store(get(B), get(MAXIMUM_WITHOUT_FACTOR))] }
}

/**
 * Every kernel of the codec. Addresses in bytes; source first for encode, decode and scale, target first for sums.
 * `add…` takes floats times a factor into a target of its own type, rounded once; `accumulate…` takes that type into floats.
 */
export const KERNELS: readonly WasmFunction[] = [
  ...narrowKernels('Half', HALF),
  ...narrowKernels('Brain', BRAIN),
  maximum('maximum16', { magnitudeMask: 0x7fff7fff, max: max16, offsets: [0] }),
  maximum('maximum32', { magnitudeMask: 0x7fffffff, max: max32, offsets: [0, 16] }),
  kernel({ name: 'addFloat', strides: [32, 32], hasFactor: true }, () =>
    [0, 16].flatMap((offset) => {
      const scaled = multiplyFloats(load(get(B), offset), splatFloat(get(FACTOR)))
      return store(get(A), addFloats(load(get(A), offset), scaled), offset)
    }),
  ),
  kernel({ name: 'scaleFloat', strides: [32, 32], hasFactor: true }, () =>
    [0, 16].flatMap((offset) =>
      store(get(B), multiplyFloats(load(get(A), offset), splatFloat(get(FACTOR))), offset),
    ),
  ),
]
