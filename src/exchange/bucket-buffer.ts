import type { Codec } from '../half/codec.js'
import { planLayout, planSegments, type Segment } from './plan/layout.js'
import { planAveraging, type WireType } from './plan/scale.js'

/** The participants in the exchange of a bucket. */
interface BucketCircle {
  /** Processes over which the mean is taken. */
  readonly ranks: number
  /** Processes on the network, which is the number of a bucket's chunks. */
  readonly chunks: number
  /** Whether `sumOverHost` comes first: then local gradients are sums, already scaled for the mean. */
  readonly isSummedOverHost: boolean
}

/** Bytes of codec memory that a bucket of `elements` values takes in `chunks` chunks. */
export function bucketBytes(elements: number, chunks: number): number {
  const { chunkElements, paddedElements } = planLayout(elements, chunks)
  return paddedElements * 8 + chunkElements * 4 + 48
}

/** Encoding of a bucket in one attempt. */
interface WireFormat {
  readonly wireType: WireType
  readonly exponent: number
}

/** Bits of inf without sign, per type. */
const INFINITE_BITS = { fp32: 0x7f800000, fp16: 0x7c00 } as const
const bytesOf = (wireType: WireType): 2 | 4 => (wireType === 'fp32' ? 4 : 2)

/**
 * The fusion buffer of one bucket: the local gradients in fp32, kept until the step is committed, and beside them the
 * wire area. Everything lies in the codec's memory, which is never freed.
 */
export class BucketBuffer {
  readonly elements: number
  readonly chunks: number
  /** Local gradients: filled as backward produces them. */
  readonly local: Float32Array
  readonly #codec: Codec
  readonly #chunkElements: number
  readonly #paddedElements: number
  readonly #averaging: ReturnType<typeof planAveraging>
  readonly #isSummedOverHost: boolean
  readonly #segments: Readonly<Record<2 | 4, readonly Segment[]>>
  /** Kernels by wire type. */
  readonly #kernels: ReturnType<typeof pickKernels>
  // Addresses of the areas: local gradients, wire area, the sum of a chunk, one lane for a single value.
  readonly #local: number
  readonly #wire: number
  readonly #sum: number
  readonly #lane: number

  /** Reserves the areas of a bucket of `elements` values. */
  constructor(codec: Codec, elements: number, { ranks, chunks, isSummedOverHost }: BucketCircle) {
    const { chunkElements, paddedElements } = planLayout(elements, chunks)
    this.elements = elements
    this.chunks = chunks
    this.#codec = codec
    this.#chunkElements = chunkElements
    this.#paddedElements = paddedElements
    this.#averaging = planAveraging(ranks)
    this.#isSummedOverHost = isSummedOverHost
    this.#segments = { 2: planSegments(chunkElements, 2), 4: planSegments(chunkElements, 4) }
    this.#kernels = pickKernels(codec)
    this.#local = codec.allocate(paddedElements * 4)
    this.#wire = codec.allocate(paddedElements * 4)
    this.#sum = codec.allocate(chunkElements * 4)
    this.#lane = codec.allocate(32)
    this.local = new Float32Array(codec.memory, this.#local, elements)
  }

  /** The pieces in which a chunk is sent. */
  segments(wireType: WireType): readonly Segment[] {
    return this.#segments[bytesOf(wireType)]
  }

  /** Scales and narrows the local gradients into the wire area: all of them, or one chunk. */
  encode(format: WireFormat, chunk?: number): void {
    const { wireType } = format
    const encode = this.#kernels.encode[wireType]
    const scale = this.#scaleOf(format)
    if (chunk === undefined) encode(this.#local, this.#wire, this.#paddedElements, scale)
    else encode(this.#localOf(chunk, 0), this.#wireOf(wireType, chunk, 0), this.#chunkElements, scale)
  }

  /** Bytes of a segment of a chunk, as sent. */
  wire(wireType: WireType, chunk: number, { offset, elements }: Segment): Uint8Array {
    return new Uint8Array(
      this.#codec.memory,
      this.#wireOf(wireType, chunk, offset),
      elements * bytesOf(wireType),
    )
  }

  /** wire += scaled local gradients, rounded once. */
  addLocal(format: WireFormat, chunk: number, { offset, elements }: Segment): void {
    const target = this.#wireOf(format.wireType, chunk, offset)
    const source = this.#localOf(chunk, offset)
    this.#kernels.add[format.wireType](target, source, elements, this.#scaleOf(format))
  }

  /** wire = received. */
  replace(
    wireType: WireType,
    { chunk, segment }: { readonly chunk: number; readonly segment: Segment },
    received: number,
  ): void {
    const bytes = new Uint8Array(this.#codec.memory, received, segment.elements * bytesOf(wireType))
    new Uint8Array(this.#codec.memory).set(bytes, this.#wireOf(wireType, chunk, segment.offset))
  }

  /** Bytes of a segment of the local gradients, in fp32. */
  localBytes(chunk: number, { offset, elements }: Segment): Uint8Array {
    return new Uint8Array(this.#codec.memory, this.#localOf(chunk, offset), elements * 4)
  }

  /** Scales the local gradients for the mean. */
  startHostSum(): void {
    const { scaleFloat } = this.#codec.kernels
    scaleFloat(this.#local, this.#local, this.#paddedElements, 2 ** this.#averaging.shift)
  }

  /** local gradients += those received from another rank, scaled for the mean. */
  addToHostSum(chunk: number, { offset, elements }: Segment, received: number): void {
    const target = this.#localOf(chunk, offset)
    this.#codec.kernels.addFloat(target, received, elements, 2 ** this.#averaging.shift)
  }

  /** Starts an fp32 sum of a chunk from the local gradients: for direct exchange, like the next two. */
  startSum(format: WireFormat, chunk: number): void {
    const { scaleFloat } = this.#codec.kernels
    scaleFloat(this.#localOf(chunk, 0), this.#sum, this.#chunkElements, this.#scaleOf(format))
  }

  /** sum += received. */
  addToSum(wireType: WireType, { offset, elements }: Segment, received: number): void {
    this.#kernels.accumulate[wireType](this.#sum + offset * 4, received, elements)
  }

  /** wire = the sum, rounded. */
  finishSum(wireType: WireType, chunk: number): void {
    const target = this.#wireOf(wireType, chunk, 0)
    this.#kernels.encode[wireType](this.#sum, target, this.#chunkElements, 1)
  }

  /** Largest |mean| that was sent, or undefined if it is not finite. */
  amax(format: WireFormat): number | undefined {
    const { wireType } = format
    const { memory } = this.#codec
    const bits = this.#codec.maximumBits(this.#wire, this.#paddedElements, bytesOf(wireType))
    if (bits >= INFINITE_BITS[wireType]) return undefined
    // One lane of the codec's own arithmetic turns the bits into their value.
    if (wireType === 'fp32') new Uint32Array(memory, this.#lane, 1)[0] = bits
    else {
      new Uint16Array(memory, this.#sum, 8).fill(bits)
      this.#kernels.decode[wireType](this.#sum, this.#lane, 8, 1)
    }
    return (new Float32Array(memory, this.#lane, 1)[0] ?? 0) * this.#unscaleOf(format)
  }

  /** Widens and unscales the result into the local gradients, which it replaces. */
  decode(format: WireFormat): void {
    const decode = this.#kernels.decode[format.wireType]
    decode(this.#wire, this.#local, this.#paddedElements, this.#unscaleOf(format))
  }

  #wireOf(wireType: WireType, chunk: number, offset: number): number {
    return this.#wire + (chunk * this.#chunkElements + offset) * bytesOf(wireType)
  }

  #localOf(chunk: number, offset: number): number {
    return this.#local + (chunk * this.#chunkElements + offset) * 4
  }

  #scaleOf({ exponent }: WireFormat): number {
    return 2 ** (exponent + (this.#isSummedOverHost ? 0 : this.#averaging.shift))
  }

  #unscaleOf({ exponent }: WireFormat): number {
    return 2 ** -exponent * this.#averaging.factor
  }
}

function pickKernels({ kernels }: Codec) {
  return {
    encode: { fp32: kernels.scaleFloat, fp16: kernels.encodeHalf },
    decode: { fp32: kernels.scaleFloat, fp16: kernels.decodeHalf },
    add: { fp32: kernels.addFloat, fp16: kernels.addHalf },
    accumulate: {
      fp32: (target: number, source: number, count: number) => kernels.addFloat(target, source, count, 1),
      fp16: kernels.accumulateHalf,
    },
  }
}
