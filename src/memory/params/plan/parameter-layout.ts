/** One parameter: float32, at a fixed place in every region that holds the model. */
export interface ParameterSlot {
  readonly name: string
  readonly shape: readonly number[]
  /** Layer it belongs to, in order of the forward; layers are prefetched one by one. */
  readonly layer: number
}

/** A slot with its place, in elements of 4 bytes. */
interface PlacedSlot extends ParameterSlot {
  readonly offset: number
  readonly length: number
}

/** Where every parameter lies, and how many elements all of them are. */
export interface ParameterLayout {
  readonly slots: readonly PlacedSlot[]
  readonly length: number
}

/** Elements that slots are aligned to: 64 bytes, so that no two share a cache line. */
const ALIGNMENT = 16

/** Places parameters one after another, in the order given. */
export function layOutParameters(parameters: readonly ParameterSlot[]): ParameterLayout {
  let offset = 0
  const slots = parameters.map((parameter): PlacedSlot => {
    const length = parameter.shape.reduce((product, side) => product * side, 1)
    const slot = { ...parameter, offset, length }
    offset += Math.ceil(length / ALIGNMENT) * ALIGNMENT
    return slot
  })
  return { slots, length: offset }
}

/** Whether two jobs mean the same parameters: same names, shapes and layers in the same order. */
export function isSameLayout(a: readonly ParameterSlot[], b: readonly ParameterSlot[]): boolean {
  const plain = (slots: readonly ParameterSlot[]) =>
    JSON.stringify(slots.map(({ name, shape, layer }) => [name, shape, layer]))
  return plain(a) === plain(b)
}

/** The first parameter that has a value which is not finite; undefined when all are fine. */
export function findNonFinite(layout: ParameterLayout, values: Float32Array): PlacedSlot | undefined {
  return layout.slots.find(({ offset, length }) => {
    for (let at = offset; at < offset + length; at++) if (!Number.isFinite(values[at])) return true
    return false
  })
}
