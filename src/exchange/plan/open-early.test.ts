import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fillBuckets } from './buckets.js'
import type { Gradient } from './gradient.js'
import { openEarly } from './open-early.js'
import { simulateBuckets } from './simulate-buckets.js'

/** One tensor of 1,000 values per layer, a layer every millisecond. */
const layers = (count: number): Gradient[] =>
  Array.from({ length: count }, (_, layer) => ({
    name: `layer ${layer}`,
    elements: 1000,
    layer,
    readySeconds: (layer + 1) / 1000,
  }))
const sizes = (buckets: readonly { readonly elements: number }[]) => buckets.map(({ elements }) => elements)

test('where the bytes are the limit, the first bucket leaves as soon as the second can follow without a pause', () => {
  const cost = { callSeconds: 1e-4, secondsPerByte: 1e-6 }
  assert.deepEqual(sizes(openEarly(layers(9), 4000, { bytesPerElement: 2, cost })), [2000, 4000, 3000])
})

test('where a call costs more than waiting, all buckets are of the size of the threshold', () => {
  const cost = { callSeconds: 1e-2, secondsPerByte: 1e-9 }
  assert.deepEqual(sizes(openEarly(layers(8), 4000, { bytesPerElement: 2, cost })), [4000, 4000])
})

test('where only the last bucket shows, the first one shifts the cuts so that the last is small', () => {
  const cost = { callSeconds: 1e-4, secondsPerByte: 1e-7 }
  const gradients = layers(12)
  const early = openEarly(gradients, 4000, { bytesPerElement: 2, cost })
  assert.deepEqual(sizes(early), [3000, 4000, 4000, 1000])
  const finish = (buckets: ReturnType<typeof fillBuckets>) =>
    simulateBuckets(gradients, buckets, { bytesPerElement: 2, cost }).finishSeconds
  assert.ok(finish(early) < finish(fillBuckets(gradients, 4000)))
})

test('tensors of one layer leave together', () => {
  const gradients = layers(8).map((gradient, index) => ({ ...gradient, layer: Math.floor(index / 2) }))
  const [first] = openEarly(gradients, 4000, {
    bytesPerElement: 2,
    cost: { callSeconds: 1e-5, secondsPerByte: 1e-6 },
  })
  assert.equal(first?.elements, 2000)
})
