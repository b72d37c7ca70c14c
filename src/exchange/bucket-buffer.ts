import type { Codec } from '../half/codec.js'
import { planLayout, planSegments, type Segment } from './plan/layout.js'
import { planAveraging, type WireType } from './plan/scale.js'

/** Bytes of codec memory that a bucket of `elements` values takes among `ranks` processes. */
export function bucketBytes(elements: number, ranks: number): number {
  const { chunkElements, paddedElements } = planLayout(elements, ranks)
  return paddedElements * 8 + chunkElements * 4 + 48
}

/** How a bucket travels in one attempt. */
export interface WireFormat {
  readonly wireType: WireType
  readonly exponent: number
}

/**
 * The fusion buffer of one bucket: the local gradients in fp32, kept until the step is committed, and beside
 * them what travels. Everything lies in the codec's memory.
 */
export interface BucketBuffer {
  readonly elements: number
  /** Local gradients: filled as backward produces them. */
  readonly local: Float32Array
  readonly segments: (wireType: WireType) => readonly Segment[]
  /** Scales and narrows the local gradients into the wire area: all of them, or one chunk. */
  readonly encode: (format: WireFormat, chunk?: number) => void
  /** Bytes of a segment of a chunk, as they travel. */
  readonly wire: (wireType: WireType, chunk: number, segment: Segment) => Uint8Array
  /** wire += scaled local gradients, rounded once. */
  readonly addLocal: (format: WireFormat, chunk: number, segment: Segment) => void
  /** wire = received. */
  readonly replace: (wireType: WireType, chunk: number, segment: Segment, received: number) => void
  /** Starts an fp32 sum of a chunk from the local gradients, adds to it, and rounds it to the wire: for direct exchange. */
  readonly startSum: (format: WireFormat, chunk: number) => void
  readonly addToSum: (wireType: WireType, segment: Segment, received: number) => void
  readonly finishSum: (wireType: WireType, chunk: number) => void
  /** Largest |mean| that travelled, or undefined if it is not finite. */
  readonly amax: (format: WireFormat) => number | undefined
  /** Widens and unscales the result over the local gradients, which it replaces. */
  readonly decode: (format: WireFormat) => void
}

/** Bits of inf without sign, per type. */
const INFINITE_BITS = { fp32: 0x7f800000, fp16: 0x7c00, bf16: 0x7f80 } as const
const bytesOf = (wireType: WireType): 2 | 4 => (wireType === 'fp32' ? 4 : 2)

/** Reserves the areas of one bucket. The memory is never given back. */
export function createBucketBuffer(codec: Codec, elements: number, ranks: number): BucketBuffer {
  const { chunkElements, paddedElements } = planLayout(elements, ranks)
  const local = codec.allocate(paddedElements * 4)
  const wire = codec.allocate(paddedElements * 4)
  const sum = codec.allocate(chunkElements * 4)
  const one = codec.allocate(32)
  const { kernels } = codec
  const { shift, factor } = planAveraging(ranks)
  const addressOf = (wireType: WireType, chunk: number, offset: number) =>
    wire + (chunk * chunkElements + offset) * bytesOf(wireType)
  const encode = { fp32: kernels.scaleFloat, fp16: kernels.encodeHalf, bf16: kernels.encodeBrain }
  const decode = { fp32: kernels.scaleFloat, fp16: kernels.decodeHalf, bf16: kernels.decodeBrain }
  const add = { fp32: kernels.addFloat, fp16: kernels.addHalf, bf16: kernels.addBrain }
  const accumulate = {
    fp32: (target: number, source: number, count: number) => kernels.addFloat(target, source, count, 1),
    fp16: kernels.accumulateHalf,
    bf16: kernels.accumulateBrain,
  }
  const segments = { 2: planSegments(chunkElements, 2), 4: planSegments(chunkElements, 4) }
  const localOf = (chunk: number, offset: number) => local + (chunk * chunkElements + offset) * 4
  const scale = ({ exponent }: WireFormat) => 2 ** (exponent + shift)
  const unscale = ({ exponent }: WireFormat) => 2 ** -exponent * factor
  return {
    elements,
    local: new Float32Array(codec.memory, local, elements),
    segments: (wireType) => segments[bytesOf(wireType)],
    encode(format, chunk) {
      const { wireType } = format
      if (chunk === undefined) encode[wireType](local, wire, paddedElements, scale(format))
      else encode[wireType](localOf(chunk, 0), addressOf(wireType, chunk, 0), chunkElements, scale(format))
    },
    wire: (wireType, chunk, { offset, elements }) =>
      new Uint8Array(codec.memory, addressOf(wireType, chunk, offset), elements * bytesOf(wireType)),
    addLocal(format, chunk, { offset, elements }) {
      const target = addressOf(format.wireType, chunk, offset)
      add[format.wireType](target, localOf(chunk, offset), elements, scale(format))
    },
    replace(wireType, chunk, { offset, elements }, received) {
      const bytes = new Uint8Array(codec.memory, received, elements * bytesOf(wireType))
      new Uint8Array(codec.memory).set(bytes, addressOf(wireType, chunk, offset))
    },
    startSum: (format, chunk) => kernels.scaleFloat(localOf(chunk, 0), sum, chunkElements, scale(format)),
    addToSum: (wireType, { offset, elements }, received) =>
      accumulate[wireType](sum + offset * 4, received, elements),
    finishSum: (wireType, chunk) => encode[wireType](sum, addressOf(wireType, chunk, 0), chunkElements, 1),
    amax(format) {
      const { wireType } = format
      const bits = codec.maximumBits(wire, paddedElements, bytesOf(wireType))
      if (bits >= INFINITE_BITS[wireType]) return undefined
      // One lane of the codec's own arithmetic turns the bits into their value.
      if (wireType === 'fp32') new Uint32Array(codec.memory, one, 1)[0] = bits
      else {
        new Uint16Array(codec.memory, sum, 8).fill(bits)
        decode[wireType](sum, one, 8, 1)
      }
      return (new Float32Array(codec.memory, one, 1)[0] ?? 0) * unscale(format)
    },
    decode: (format) => decode[format.wireType](wire, local, paddedElements, unscale(format)),
  }
}
