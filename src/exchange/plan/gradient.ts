/** A gradient to exchange. Lists of gradients are in backward order: first ready first. */
export interface Gradient {
  readonly name: string
  /** Number of values. */
  readonly elements: number
  /** Index of the layer it belongs to, in backward order. */
  readonly layer: number
  /** Seconds after the start of backward at which it is complete. */
  readonly readySeconds: number
}

/** A layer of a model without weights: the size of its gradients and the cost of its backward pass. */
export interface ModelLayer {
  readonly name: string
  /** Multiply-adds of one sample, forward. */
  readonly flops: number
  /** Output elements of one sample. */
  readonly activations: number
  readonly tensors: readonly { readonly name: string; readonly shape: readonly number[] }[]
}

/** Shares of backward time attributed to multiply-adds, to activation traffic, and evenly to layers. */
const TIME_SHARES = { flops: 0.7, activations: 0.25, flat: 0.05 }

/**
 * Lists a model's gradients in backward order (last layer first), each ready when its layer's backward ends. Used when
 * no profile of a real run exists.
 */
export function gradientsOfModel(layers: readonly ModelLayer[], backwardSeconds: number): Gradient[] {
  const flops = layers.reduce((sum, layer) => sum + layer.flops, 0)
  const activations = layers.reduce((sum, layer) => sum + layer.activations, 0)
  const gradients: Gradient[] = []
  let share = 0
  for (const [index, layer] of layers.toReversed().entries()) {
    share +=
      (TIME_SHARES.flops * layer.flops) / flops +
      (TIME_SHARES.activations * layer.activations) / activations +
      TIME_SHARES.flat / layers.length
    for (const { name, shape } of layer.tensors.toReversed()) {
      const elements = shape.reduce((product, size) => product * size, 1)
      gradients.push({ name, elements, layer: index, readySeconds: share * backwardSeconds })
    }
  }
  return gradients
}

/** Number of values in all gradients. */
export function countElements(gradients: readonly Gradient[]): number {
  return gradients.reduce((sum, { elements }) => sum + elements, 0)
}

/** Number of different layers among them. */
export function countLayers(gradients: readonly Gradient[]): number {
  return new Set(gradients.map(({ layer }) => layer)).size
}
