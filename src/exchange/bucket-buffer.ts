import { type Codec, INFINITE_FLOAT_BITS } from '../half/codec.js'
import type { Int8Blocks } from '../half/int8-blocks.js'
import { planLayout, planParts, planSegments, type Segment } from './plan/layout.js'
import { planAveraging } from './plan/scale.js'
import { tensorBytes, type WireType } from './plan/wire-type.js'

/** The participants in the exchange of a bucket. */
interface BucketCircle {
  /** Processes over which the mean is taken. */
  readonly ranks: number
  /** Processes on the network, which is the number of a bucket's chunks. */
  readonly chunks: number
  /** Whether `sumOverHost` comes first: then local gradients are sums, already scaled for the mean. */
  readonly isSummedOverHost: boolean
}

/** Bytes of codec memory that a bucket with parts of these sizes takes in `chunks` chunks. */
export function bucketBytes(sizes: readonly number[], chunks: number, wire: WireType): number {
  const { chunkElements, paddedElements } = planLayout(planParts(sizes, wire).elements, chunks, wire)
  return paddedElements * 8 + chunkElements * 4 + 48
}

/** Encoding of a bucket in one attempt. */
export interface WireFormat {
  readonly wireType: WireType
  /** By part; empty for fp32 and int8. */
  readonly exponents: readonly number[]
}

/** Bits of inf without sign, per type. */
const INFINITE_BITS = { fp32: INFINITE_FLOAT_BITS, fp16: 0x7c00 } as const
const BYTES = { fp32: 4, fp16: 2 } as const

/**
 * The fusion buffer of one bucket: the local gradients in fp32, kept until the step is committed, and beside them the
 * wire area. Everything lies in the codec's memory, which is never freed.
 */
export class BucketBuffer {
  /** Values of all parts. */
  readonly elements: number
  readonly chunks: number
  /** Local gradients: filled as backward produces them, each part at its start in `planParts`. */
  readonly local: Float32Array
  readonly #codec: Codec
  readonly #chunkElements: number
  readonly #paddedElements: number
  readonly #starts: readonly number[]
  readonly #averaging: ReturnType<typeof planAveraging>
  readonly #isSummedOverHost: boolean
  readonly #segments: ReadonlyMap<WireType, readonly Segment[]>
  /** With a plan for int8. */
  readonly #blocks: Int8Blocks | undefined
  /** Kernels by wire type. */
  readonly #kernels: ReturnType<typeof pickKernels>
  // Addresses of the areas: local gradients, wire area, the sum of a chunk, one lane for a single value.
  readonly #local: number
  readonly #wire: number
  readonly #sum: number
  readonly #lane: number

  /** Reserves the areas of a bucket with parts of these `sizes`. */
  constructor(
    { codec, blocks }: { readonly codec: Codec; readonly blocks?: Int8Blocks | undefined },
    sizes: readonly number[],
    { ranks, chunks, isSummedOverHost }: BucketCircle,
  ) {
    const wires: readonly WireType[] = blocks ? ['fp32', 'int8'] : ['fp32', 'fp16']
    const { starts, elements } = planParts(sizes, wires[1]!)
    const { chunkElements, paddedElements } = planLayout(elements, chunks, wires[1]!)
    this.elements = sizes.reduce((sum, size) => sum + size, 0)
    this.chunks = chunks
    this.#codec = codec
    this.#chunkElements = chunkElements
    this.#paddedElements = paddedElements
    this.#starts = starts
    this.#averaging = planAveraging(ranks)
    this.#isSummedOverHost = isSummedOverHost
    this.#segments = new Map(wires.map((wire) => [wire, planSegments(chunkElements, wire)]))
    this.#blocks = blocks
    const share = isSummedOverHost ? this.#averaging.factor : Math.fround(1 / ranks)
    this.#kernels = pickKernels(codec, { blocks, share })
    this.#local = codec.allocate(paddedElements * 4)
    this.#wire = codec.allocate(paddedElements * 4)
    this.#sum = codec.allocate(chunkElements * 4)
    this.#lane = codec.allocate(32)
    this.local = new Float32Array(codec.memory, this.#local, elements)
  }

  /** The pieces in which a chunk is sent. */
  segments(wireType: WireType): readonly Segment[] {
    return this.#segments.get(wireType) ?? []
  }

  /** Scales and narrows the local gradients into the wire area: all of them, or one chunk. */
  encode(format: WireFormat, chunk?: number): void {
    const encode = this.#kernels.encode[format.wireType]
    const [first, count] =
      chunk === undefined ? [0, this.#paddedElements] : [this.#firstOf(chunk, 0), this.#chunkElements]
    for (const { at, elements, exponent } of this.#spans(format, first, count))
      encode(this.#localAt(at), this.#wireAt(format.wireType, at), elements, this.#scaleOf(exponent))
  }

  /** Bytes of a segment of a chunk, as sent. */
  wire(wireType: WireType, chunk: number, { offset, elements }: Segment): Uint8Array {
    return new Uint8Array(
      this.#codec.memory,
      this.#wireAt(wireType, this.#firstOf(chunk, offset)),
      tensorBytes(wireType, elements),
    )
  }

  /** wire += scaled local gradients, rounded once. */
  addLocal(format: WireFormat, chunk: number, segment: Segment): void {
    const add = this.#kernels.add[format.wireType]
    for (const { at, elements, exponent } of this.#spans(
      format,
      this.#firstOf(chunk, segment.offset),
      segment.elements,
    ))
      add(this.#wireAt(format.wireType, at), this.#localAt(at), elements, this.#scaleOf(exponent))
  }

  /** wire = received. */
  replace(
    wireType: WireType,
    { chunk, segment }: { readonly chunk: number; readonly segment: Segment },
    received: number,
  ): void {
    const bytes = new Uint8Array(this.#codec.memory, received, tensorBytes(wireType, segment.elements))
    const target = this.#wireAt(wireType, this.#firstOf(chunk, segment.offset))
    new Uint8Array(this.#codec.memory).set(bytes, target)
  }

  /** Bytes of a segment of the local gradients, in fp32. */
  localBytes(chunk: number, { offset, elements }: Segment): Uint8Array {
    return new Uint8Array(this.#codec.memory, this.#localAt(this.#firstOf(chunk, offset)), elements * 4)
  }

  /** Scales the local gradients for the mean. */
  startHostSum(): void {
    const { scaleFloat } = this.#codec.kernels
    scaleFloat(this.#local, this.#local, this.#paddedElements, 2 ** this.#averaging.shift)
  }

  /** local gradients += those received from another rank, scaled for the mean. */
  addToHostSum(chunk: number, { offset, elements }: Segment, received: number): void {
    const target = this.#localAt(this.#firstOf(chunk, offset))
    this.#codec.kernels.addFloat(target, received, elements, 2 ** this.#averaging.shift)
  }

  /**
   * Starts an fp32 sum of a chunk: for direct exchange, like the next three. It starts from the local gradients; with
   * int8 from zero, as this rank's own are among those that travel and are summed in rank order.
   */
  startSum(format: WireFormat, chunk: number): void {
    const { scaleFloat } = this.#codec.kernels
    const first = this.#firstOf(chunk, 0)
    if (format.wireType === 'int8') {
      new Float32Array(this.#codec.memory, this.#sum, this.#chunkElements).fill(0)
      return
    }
    for (const { at, elements, exponent } of this.#spans(format, first, this.#chunkElements))
      scaleFloat(this.#localAt(at), this.#sum + (at - first) * 4, elements, this.#scaleOf(exponent))
  }

  /** sum += received. */
  addToSum(wireType: WireType, { offset, elements }: Segment, received: number): void {
    this.#kernels.accumulate[wireType](this.#sum + offset * 4, received, elements)
  }

  /** sum += this rank's own chunk, as it would travel. */
  addOwnToSum(wireType: WireType, chunk: number): void {
    const source = this.#wireAt(wireType, this.#firstOf(chunk, 0))
    this.#kernels.accumulate[wireType](this.#sum, source, this.#chunkElements)
  }

  /** wire = the sum, rounded. */
  finishSum(wireType: WireType, chunk: number): void {
    const target = this.#wireAt(wireType, this.#firstOf(chunk, 0))
    this.#kernels.encode[wireType](this.#sum, target, this.#chunkElements, 1)
  }

  /** Largest |mean| of each part that was sent, none with int8; undefined if one is not finite. */
  amaxes({ wireType, exponents }: WireFormat): readonly number[] | undefined {
    const amaxes: number[] = []
    if (wireType === 'int8')
      return this.#blocks?.areFinite(this.#wire, this.#paddedElements) ? amaxes : undefined
    for (const [part, first] of this.#starts.entries()) {
      const elements = this.#endOf(part) - first
      const address = this.#wireAt(wireType, first)
      const bits = elements === 0 ? 0 : this.#codec.maximumBits(address, elements, BYTES[wireType])
      if (bits >= INFINITE_BITS[wireType]) return undefined
      amaxes.push(this.#valueOf(wireType, bits) * this.#unscaleOf(exponents[part] ?? 0))
    }
    return amaxes
  }

  /** Widens and unscales the result into the local gradients, which it replaces. */
  decode(format: WireFormat): void {
    const decode = this.#kernels.decode[format.wireType]
    for (const { at, elements, exponent } of this.#spans(format, 0, this.#paddedElements))
      decode(this.#wireAt(format.wireType, at), this.#localAt(at), elements, this.#unscaleOf(exponent))
  }

  /** Neighbouring parts of one exponent, cut to `count` values from `first`. */
  *#spans({ exponents }: WireFormat, first: number, count: number) {
    const last = first + count
    let at = first
    for (let part = 0; part < this.#starts.length && at < last; part++) {
      const end = Math.min(last, this.#endOf(part))
      const exponent = exponents[part] ?? 0
      const isJoined = end < last && exponent === (exponents[part + 1] ?? 0)
      if (end <= at || isJoined) continue
      yield { at, elements: end - at, exponent }
      at = end
    }
  }

  /** One lane of the codec's own arithmetic turns the bits of a value into the value. */
  #valueOf(wireType: 'fp32' | 'fp16', bits: number): number {
    const { memory } = this.#codec
    if (wireType === 'fp32') new Uint32Array(memory, this.#lane, 1)[0] = bits
    else {
      new Uint16Array(memory, this.#sum, 8).fill(bits)
      this.#kernels.decode[wireType](this.#sum, this.#lane, 8, 1)
    }
    return new Float32Array(memory, this.#lane, 1)[0] ?? 0
  }

  /** The value after a part and its zeros; those behind the last part are its own. */
  #endOf(part: number): number {
    return this.#starts[part + 1] ?? this.#paddedElements
  }

  #firstOf(chunk: number, offset: number): number {
    return chunk * this.#chunkElements + offset
  }

  #wireAt(wireType: WireType, value: number): number {
    return this.#wire + tensorBytes(wireType, value)
  }

  #localAt(value: number): number {
    return this.#local + value * 4
  }

  #scaleOf(exponent: number): number {
    return 2 ** (exponent + (this.#isSummedOverHost ? 0 : this.#averaging.shift))
  }

  #unscaleOf(exponent: number): number {
    return 2 ** -exponent * this.#averaging.factor
  }
}

/** Blocks need no factors: they have their own scales, and take their share of the mean when they are summed. */
function pickKernels(
  { kernels }: Codec,
  { blocks, share }: { readonly blocks: Int8Blocks | undefined; readonly share: number },
) {
  const noRing = () => {
    throw new Error('int8 does not go around a ring')
  }
  return {
    encode: {
      fp32: kernels.scaleFloat,
      fp16: kernels.encodeHalf,
      int8: (source: number, target: number, count: number) => blocks?.encode(source, target, count),
    },
    decode: {
      fp32: kernels.scaleFloat,
      fp16: kernels.decodeHalf,
      int8: (source: number, target: number, count: number) => blocks?.decode(source, target, count),
    },
    add: { fp32: kernels.addFloat, fp16: kernels.addHalf, int8: noRing },
    accumulate: {
      int8: (target: number, source: number, count: number) =>
        blocks?.accumulate(target, source, count, share),
      fp32: (target: number, source: number, count: number) => kernels.addFloat(target, source, count, 1),
      fp16: kernels.accumulateHalf,
    },
  }
}
