import { convertInChunks } from './half-chunks.js'
import type { ParameterType } from './plan/parameter-layout.js'

/**
 * Rounds parameters to the values that a worker of `type` holds: to the nearest half, ties to even, like PyTorch's
 * copy.
 */
export function narrowParameters(values: Float32Array, type: Exclude<ParameterType, 'f32'>): Uint16Array {
  const narrow = new Uint16Array(values.length)
  convertInChunks(values.length, (at, count, { memory, kernels, floats, halves, rounded }) => {
    new Float32Array(memory, floats, count).set(values.subarray(at, at + count))
    const encode = type === 'bf16' ? kernels.encodeBrain : kernels.encodeHalf
    encode(floats, halves, rounded, 1)
    narrow.set(new Uint16Array(memory, halves, count), at)
  })
  return narrow
}

/** Widens halves exactly to float32 values in `target`. */
export function widenParameters(
  narrow: Uint16Array,
  type: Exclude<ParameterType, 'f32'>,
  target: Float32Array,
): void {
  convertInChunks(narrow.length, (at, count, { memory, kernels, floats, halves, rounded }) => {
    new Uint16Array(memory, halves, count).set(narrow.subarray(at, at + count))
    const decode = type === 'bf16' ? kernels.decodeBrain : kernels.decodeHalf
    decode(halves, floats, rounded, 1)
    target.set(new Float32Array(memory, floats, count), at)
  })
}
