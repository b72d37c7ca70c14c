import { type Codec, INFINITE_FLOAT_BITS } from './codec.js'
import { BLOCK_BYTES, BLOCK_VALUES } from './plan-blocks.js'

const LARGEST_SHARE = Math.fround(1 / 127)
const SMALLEST_SCALE = 2 ** -126
/** Blocks of random numbers, and what chooses one by a block's scale. */
const ROWS = 1024
const HASH = 2654435761
const SEED = 8

/**
 * Block-wise int8, to the bit as in `dsc.exchange.int8_blocks`: the law is there, and fixtures/exchange/int8-vectors.json
 * is checked by both. A block is 256 signed bytes and then its scale, a float, little-endian. Counts are of values,
 * multiples of 256.
 */
export class Int8Blocks {
  readonly #codec: Codec
  readonly #memory: DataView
  readonly #random: number
  readonly #floats = new Float32Array(1)
  readonly #bits = new Uint32Array(this.#floats.buffer)

  constructor(codec: Codec) {
    this.#codec = codec
    this.#memory = new DataView(codec.memory)
    this.#random = codec.allocate(RANDOM_BYTES)
    new Float32Array(codec.memory, this.#random, ROWS * BLOCK_VALUES).set(randomRows())
  }

  /** Floats at `source` as blocks at `target`. The scale of a block with inf or NaN is NaN. */
  encode(source: number, target: number, count: number): void {
    const { kernels } = this.#codec
    for (let at = 0; at < count / BLOCK_VALUES; at++) {
      const [values, block] = [source + at * BLOCK_VALUES * 4, target + at * BLOCK_BYTES]
      const bits = this.#codec.maximumBits(values, BLOCK_VALUES, 4)
      const isNumber = bits < INFINITE_FLOAT_BITS
      const { scale, row } = this.#scaleOf(isNumber ? bits : 0)
      const inverse = scale > 0 ? Math.fround(1 / scale) : 0
      kernels.encodeInt8(values, block, BLOCK_VALUES, inverse, this.#random + row * BLOCK_VALUES * 4)
      this.#memory.setFloat32(block + BLOCK_VALUES, isNumber ? scale : Number.NaN, true)
    }
  }

  /** Blocks at `source` as floats at `target`. */
  decode(source: number, target: number, count: number): void {
    for (let at = 0; at < count / BLOCK_VALUES; at++) {
      const block = source + at * BLOCK_BYTES
      const scale = this.#memory.getFloat32(block + BLOCK_VALUES, true)
      this.#codec.kernels.decodeInt8(block, target + at * BLOCK_VALUES * 4, BLOCK_VALUES, scale)
    }
  }

  /** Floats at `target` += those of blocks at `source`, of which each scale is multiplied by the float `share` first. */
  accumulate(target: number, source: number, count: number, share: number): void {
    for (let at = 0; at < count / BLOCK_VALUES; at++) {
      const block = source + at * BLOCK_BYTES
      const scale = Math.fround(this.#memory.getFloat32(block + BLOCK_VALUES, true) * share)
      this.#codec.kernels.accumulateInt8(target + at * BLOCK_VALUES * 4, block, BLOCK_VALUES, scale)
    }
  }

  /** Whether no block at `address` held inf or NaN. */
  areFinite(address: number, count: number): boolean {
    for (let at = 0; at < count / BLOCK_VALUES; at++)
      if (!Number.isFinite(this.#memory.getFloat32(address + at * BLOCK_BYTES + BLOCK_VALUES, true)))
        return false
    return true
  }

  #scaleOf(bits: number): { readonly scale: number; readonly row: number } {
    this.#bits[0] = bits
    this.#floats[0] = this.#floats[0]! * LARGEST_SHARE
    if (this.#floats[0] < SMALLEST_SCALE) this.#floats[0] = 0
    return { scale: this.#floats[0]!, row: (Math.imul(this.#bits[0]!, HASH) >>> 16) % ROWS }
  }
}

/** Bytes of codec memory that `Int8Blocks` takes. */
export const RANDOM_BYTES = ROWS * BLOCK_VALUES * 4

/** Floats in [0, 1) by the Mersenne twister MT19937, as PyTorch draws them: the lower 24 bits of each number. */
function randomRows(): Float32Array {
  const state = new Uint32Array(624)
  state[0] = SEED
  for (let at = 1; at < 624; at++)
    state[at] = Math.imul(1812433253, state[at - 1]! ^ (state[at - 1]! >>> 30)) + at
  return Float32Array.from({ length: ROWS * BLOCK_VALUES }, (_, draw) => {
    const at = draw % 624
    if (at === 0) twist(state)
    let bits = state[at]!
    bits ^= bits >>> 11
    bits ^= (bits << 7) & 0x9d2c5680
    bits ^= (bits << 15) & 0xefc60000
    bits ^= bits >>> 18
    return (bits & 0xffffff) / 2 ** 24
  })
}

function twist(state: Uint32Array): void {
  for (let at = 0; at < 624; at++) {
    const joined = (state[at]! & 0x80000000) | (state[(at + 1) % 624]! & 0x7fffffff)
    state[at] = state[(at + 397) % 624]! ^ (joined >>> 1) ^ (joined & 1 ? 0x9908b0df : 0)
  }
}
