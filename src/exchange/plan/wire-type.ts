import { BLOCK_VALUES, planBlockBytes } from '../../half/plan-blocks.js'
import type { Gradient } from './gradient.js'

/** Types of values on the wire. */
export const WIRE_TYPES = ['fp32', 'fp16', 'int8'] as const

/** Type of values on the wire. */
export type WireType = (typeof WIRE_TYPES)[number]

/** Bytes of a tensor of `elements` values on the wire. In int8 each tensor begins a block. */
export function tensorBytes(wireType: WireType, elements: number): number {
  if (wireType === 'int8') return planBlockBytes(elements)
  return elements * (wireType === 'fp16' ? 2 : 4)
}

/** Mean bytes per value of these gradients on the wire, > 0. */
export function meanBytes(wireType: WireType, gradients: readonly Gradient[]): number {
  let [elements, bytes] = [0, 0]
  for (const gradient of gradients) {
    elements += gradient.elements
    bytes += tensorBytes(wireType, gradient.elements)
  }
  return elements > 0 ? bytes / elements : tensorBytes(wireType, BLOCK_VALUES) / BLOCK_VALUES
}
