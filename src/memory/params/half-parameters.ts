import { type Codec, openCodec } from '../../half/codec.js'
import type { ParameterType } from './plan/parameter-layout.js'

/** Elements converted at a time. */
const CHUNK = 1 << 18

let opened: { readonly codec: Codec; readonly floats: number; readonly halves: number } | undefined

/**
 * Rounds parameters to the values that a worker of `type` holds: to the nearest half, ties to even, like PyTorch's
 * copy.
 */
export function narrowParameters(values: Float32Array, type: Exclude<ParameterType, 'f32'>): Uint16Array {
  const narrow = new Uint16Array(values.length)
  for (let at = 0; at < values.length; at += CHUNK) {
    const part = values.subarray(at, at + CHUNK)
    const { codec, floats, halves } = open()
    const { memory, kernels } = codec
    new Float32Array(memory, floats, part.length).set(part)
    const encode = type === 'bf16' ? kernels.encodeBrain : kernels.encodeHalf
    encode(floats, halves, roundUp(part.length), 1)
    narrow.set(new Uint16Array(memory, halves, part.length), at)
  }
  return narrow
}

/** Widens halves exactly to float32 values in `target`. */
export function widenParameters(
  narrow: Uint16Array,
  type: Exclude<ParameterType, 'f32'>,
  target: Float32Array,
): void {
  for (let at = 0; at < narrow.length; at += CHUNK) {
    const part = narrow.subarray(at, at + CHUNK)
    const { codec, floats, halves } = open()
    const { memory, kernels } = codec
    new Uint16Array(memory, halves, part.length).set(part)
    const decode = type === 'bf16' ? kernels.decodeBrain : kernels.decodeHalf
    decode(halves, floats, roundUp(part.length), 1)
    target.set(new Float32Array(memory, floats, part.length), at)
  }
}

function open() {
  if (!opened) {
    const codec = openCodec(6 * CHUNK)
    opened = { codec, floats: codec.allocate(4 * CHUNK), halves: codec.allocate(2 * CHUNK) }
  }
  return opened
}

/** The kernels process eight values at a time. */
function roundUp(count: number): number {
  return Math.ceil(count / 8) * 8
}
