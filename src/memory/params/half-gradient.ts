import { convertInChunks } from './half-chunks.js'
import { type ParameterLayout, roundUpLength } from './plan/parameter-layout.js'

/** Scales are 2^-120 to 2^120, so that float32 holds them and their inverses. */
const MAX_EXPONENT = 120
/** A parameter's scale brings its largest magnitude below 2^15. */
const TOP_EXPONENT = 15

/**
 * The payload of a push of halves: the halves of the whole layout, 0 for buffers, then the buffers' values in float32,
 * unscaled and unrounded, each with its padding.
 */
export function encodeHalfPush(
  layout: ParameterLayout,
  gradient: Float32Array,
): { exponents: number[]; payload: Uint8Array } {
  const { exponents, halves } = encodeHalfGradient(layout, gradient)
  const buffers = listBuffers(layout).map(({ offset, size }) => gradient.subarray(offset, offset + size))
  const parts = [halves, ...buffers].map(
    ({ buffer, byteOffset, byteLength }) => new Uint8Array(buffer, byteOffset, byteLength),
  )
  return { exponents, payload: Buffer.concat(parts) }
}

/** Restores the input of `encodeHalfPush`, except for rounding; undefined for a payload of another layout's size. */
export function decodeHalfPush(
  layout: ParameterLayout,
  exponents: readonly number[],
  payload: Float32Array,
): Float32Array | undefined {
  const buffers = listBuffers(layout)
  let at = layout.length / 2
  if (payload.length !== buffers.reduce((sum, { size }) => sum + size, at)) return undefined
  const halves = new Uint16Array(payload.buffer, payload.byteOffset, layout.length)
  const gradient = decodeHalfGradient(layout, exponents, halves)
  for (const { offset, size } of buffers) {
    gradient.set(payload.subarray(at, at + size), offset)
    at += size
  }
  return gradient
}

function listBuffers(layout: ParameterLayout): { offset: number; size: number }[] {
  return layout.slots
    .filter(({ kind }) => kind === 'buffer')
    .map(({ offset, length }) => ({ offset, size: roundUpLength(length) }))
}

/**
 * Encodes a gradient as halves with one power-of-two scale per parameter: half the bytes. Each parameter's largest
 * magnitude lands in [2^14, 2^15), so a value is off by at most 2^-11 of itself plus 2^-39 of that largest one. A
 * parameter whose gradient is not finite has scale 1 and stays not finite.
 */
export function encodeHalfGradient(
  layout: ParameterLayout,
  gradient: Float32Array,
): { exponents: number[]; halves: Uint16Array } {
  const halves = new Uint16Array(layout.length)
  const exponents = layout.slots.map(({ kind, offset, length }) => {
    if (kind === 'buffer') return 0
    const exponent = findExponent(gradient, offset, length)
    convertInChunks(length, (at, count, { memory, kernels, floats, halves: target, rounded }) => {
      new Float32Array(memory, floats, count).set(gradient.subarray(offset + at, offset + at + count))
      kernels.encodeHalf(floats, target, rounded, 2 ** exponent)
      halves.set(new Uint16Array(memory, target, count), offset + at)
    })
    return exponent
  })
  return { exponents, halves }
}

/** Restores the float32 gradient. `exponents` and `halves` are from `encodeHalfGradient` with this layout. */
export function decodeHalfGradient(
  layout: ParameterLayout,
  exponents: readonly number[],
  halves: Uint16Array,
): Float32Array {
  const gradient = new Float32Array(layout.length)
  for (const [index, { offset, length }] of layout.slots.entries()) {
    convertInChunks(length, (at, count, { memory, kernels, floats, halves: source, rounded }) => {
      new Uint16Array(memory, source, count).set(halves.subarray(offset + at, offset + at + count))
      kernels.decodeHalf(source, floats, rounded, 2 ** -exponents[index]!)
      gradient.set(new Float32Array(memory, floats, count), offset + at)
    })
  }
  return gradient
}

/** The power of two that brings the largest magnitude into [2^14, 2^15); 0 if it is 0 or not finite. */
function findExponent(values: Float32Array, offset: number, length: number): number {
  let largest = 0
  let sum = 0
  for (let at = offset; at < offset + length; at++) {
    const magnitude = Math.abs(values[at]!)
    if (magnitude > largest) largest = magnitude
    sum += magnitude - magnitude // NaN as soon as one value is not finite
  }
  if (largest === 0 || sum !== 0) return 0
  const exponent = TOP_EXPONENT - 1 - Math.floor(Math.log2(largest))
  return Math.max(-MAX_EXPONENT, Math.min(MAX_EXPONENT, exponent))
}
