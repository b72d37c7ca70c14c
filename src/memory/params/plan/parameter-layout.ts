/** A worker's type for a parameter; the central node's own values are always float32. */
export type ParameterType = 'f32' | 'bf16' | 'f16'

/** One parameter, or one buffer: at a fixed place in every region that holds the model. */
export interface ParameterSlot {
  readonly name: string
  readonly shape: readonly number[]
  /** The layer it belongs to, in order of the forward; layers are prefetched one by one. */
  readonly layer: number
  /** Default: a parameter. A buffer's values are pushed in its gradient's place and averaged, not trained. */
  readonly kind?: 'parameter' | 'buffer' | undefined
  /** Default: f32. Halves are sent as halves to workers that ask for them. */
  readonly type?: ParameterType | undefined
  /** Replaces the optimizer's weight decay: 0 for biases and norms. */
  readonly weightDecay?: number | undefined
  /** Factor for the learning rate. Default: 1. */
  readonly rateScale?: number | undefined
}

/** A slot with its place, in elements of 4 bytes. */
export interface PlacedSlot extends ParameterSlot {
  readonly offset: number
  readonly length: number
}

/** The place of every parameter, and the total number of elements. */
export interface ParameterLayout {
  readonly slots: readonly PlacedSlot[]
  readonly length: number
}

/** Elements that slots are aligned to: 64 bytes, so that no two share a cache line. */
const ALIGNMENT = 16

/** Places parameters one after another, in the given order. */
export function layOutParameters(parameters: readonly ParameterSlot[]): ParameterLayout {
  let offset = 0
  const slots = parameters.map((parameter): PlacedSlot => {
    const length = parameter.shape.reduce((product, side) => product * side, 1)
    const slot = { ...parameter, offset, length }
    offset += roundUpLength(length)
    return slot
  })
  return { slots, length: offset }
}

/** Number of elements that a slot of `length` takes with its padding. */
export function roundUpLength(length: number): number {
  return Math.ceil(length / ALIGNMENT) * ALIGNMENT
}

/** Whether two jobs have the same parameters: the same slots in the same order. */
export function isSameLayout(a: readonly ParameterSlot[], b: readonly ParameterSlot[]): boolean {
  const plain = (slots: readonly ParameterSlot[]) =>
    JSON.stringify(
      slots.map(({ name, shape, layer, kind = 'parameter', type = 'f32', weightDecay, rateScale = 1 }) => [
        ...[name, shape, layer, kind, type, weightDecay, rateScale],
      ]),
    )
  return plain(a) === plain(b)
}

/** The first parameter with a value that is not finite; undefined if all are finite. */
export function findNonFinite(layout: ParameterLayout, values: Float32Array): PlacedSlot | undefined {
  return layout.slots.find(({ offset, length }) => {
    for (let at = offset; at < offset + length; at++) if (!Number.isFinite(values[at])) return true
    return false
  })
}
