import assert from 'node:assert/strict'
import { test } from 'node:test'
import { countElements, countLayers, gradientsOfModel, type ModelLayer } from './gradient.js'

const LAYERS: readonly ModelLayer[] = [
  { name: 'first', flops: 300, activations: 100, tensors: [{ name: 'w', shape: [2, 3] }] },
  {
    ...{ name: 'last', flops: 100, activations: 300 },
    tensors: [
      { name: 'v', shape: [4] },
      { name: 'bias', shape: [] },
    ],
  },
]

test('gradients come in backward order, by 70 % work, 25 % traffic and 5 % layers', () => {
  const gradients = gradientsOfModel(LAYERS, 10)
  assert.deepEqual(
    gradients.map(({ name, elements, layer }) => [name, elements, layer]),
    [
      ['bias', 1, 0],
      ['v', 4, 0],
      ['w', 6, 1],
    ],
  )
  // The last layer: 0.7 × 100/400 + 0.25 × 300/400 + 0.05 / 2 of 10 s.
  for (const [index, seconds] of [3.875, 3.875, 10].entries())
    assert.ok(Math.abs(gradients[index]!.readySeconds - seconds) < 1e-9, `${gradients[index]!.readySeconds}`)
  assert.deepEqual([countElements(gradients), countLayers(gradients)], [11, 2])
})
