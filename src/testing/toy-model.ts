import { stepSgd } from '../memory/params/plan/optimizer.js'
import type { SgdSettings } from '../memory/params/plan/optimizer-settings.js'
import { layOutParameters, type ParameterSlot } from '../memory/params/plan/parameter-layout.js'
import { reduceGradients } from '../memory/params/plan/reduce-gradients.js'

/** A model of three parameters for tests of the central node. */
export const TOY_SLOTS: readonly ParameterSlot[] = [
  { name: 'first.weight', shape: [40, 30], layer: 0 },
  { name: 'first.bias', shape: [40], layer: 0 },
  { name: 'second.weight', shape: [7, 40], layer: 1 },
]
export const TOY_SGD: SgdSettings = {
  kind: 'sgd',
  learningRate: 0.05,
  momentum: 0.9,
  isNesterov: false,
  weightDecay: 0,
}

const { slots, length } = layOutParameters(TOY_SLOTS)

/** Its parameters before step 0. */
export const TOY_VALUES: Float32Array = Float32Array.from({ length }, (_, at) => Math.fround(Math.sin(at)))

/** The gradient of `rank` at `step`: pulls every value towards one that depends on both. */
export function makeGradient(values: Float32Array, rank: number, step: number): Float32Array {
  return Float32Array.from(values, (value, at) => value - Math.fround(Math.cos(at + 7 * rank + 3 * step)))
}

/** The result of a single process that performs the steps of all ranks. */
export function trainAlone(workers: number, steps: number, isMean: boolean): Float32Array {
  const values = Float32Array.from(TOY_VALUES)
  const velocity = new Float32Array(values.length)
  for (let step = 0; step < steps; step++) {
    const gradients = Array.from({ length: workers }, (_, rank) => makeGradient(values, rank, step))
    const state = { parameters: values, moments: [velocity] }
    const gradient = reduceGradients(gradients, isMean ? 'mean' : 'sum')
    for (const { offset, length } of slots)
      stepSgd(state, gradient, { settings: TOY_SGD, offset, length, step: step + 1 })
  }
  return values
}
