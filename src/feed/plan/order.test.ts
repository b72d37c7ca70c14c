import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { type OrderKind, planOrder, shuffleSamples } from './order.js'

interface Vector {
  readonly sampleCount: number
  readonly seed: number
  readonly epoch: number
  readonly kind: OrderKind
  readonly head: readonly number[]
  readonly sha256: string
}
const VECTORS = JSON.parse(
  readFileSync(new URL('../../../fixtures/feed/order-vectors.json', import.meta.url), 'utf8'),
) as { version: number; vectors: readonly Vector[] }

test('the order of every shared vector is unchanged; a new order needs a new kind, or resumed jobs repeat samples', () => {
  assert.equal(VECTORS.version, 1)
  assert.equal(VECTORS.vectors.length, 20)
  for (const vector of VECTORS.vectors) {
    const order = planOrder(vector)
    const samples = Uint32Array.from({ length: vector.sampleCount }, (_, i) => order.sampleAt(i))
    assert.deepEqual([...samples.slice(0, 8)], vector.head)
    assert.equal(createHash('sha256').update(samples).digest('hex'), vector.sha256, JSON.stringify(vector))
  }
})

for (const kind of ['shuffle', 'feistel6', 'sequential'] as const) {
  test(`${kind} visits every sample once, for sizes that are no power of two`, () => {
    for (const sampleCount of [1, 2, 3, 63, 64, 65, 1000, 4097]) {
      const order = planOrder({ sampleCount, seed: 3, epoch: 1, kind })
      const seen = new Set(Array.from({ length: sampleCount }, (_, i) => order.sampleAt(i)))
      assert.equal(seen.size, sampleCount)
      assert.ok([...seen].every((sample) => sample >= 0 && sample < sampleCount))
    }
  })
}

for (const { kind, sampleCount, epochs } of [
  { kind: 'shuffle', sampleCount: 12, epochs: 24_000 },
  { kind: 'shuffle', sampleCount: 4096, epochs: 200 },
  { kind: 'feistel6', sampleCount: 4096, epochs: 200 },
] as const) {
  test(`${kind} of ${sampleCount} puts samples at all places, and pairs side by side, equally often`, () => {
    const groups = 12
    const places = new Float64Array(groups * groups)
    const pairs = new Float64Array(groups * groups)
    const groupOf = (value: number) => Math.floor((value * groups) / sampleCount)
    let paired = 0
    for (let epoch = 0; epoch < epochs; epoch++) {
      const order = planOrder({ sampleCount, seed: 99, epoch, kind })
      for (let i = 0; i < sampleCount; i++) {
        places[groupOf(i) * groups + groupOf(order.sampleAt(i))]! += 1
        if (i === 0) continue
        pairs[groupOf(order.sampleAt(i - 1)) * groups + groupOf(order.sampleAt(i))]! += 1
        paired++
      }
    }
    const size = (group: number) =>
      Math.ceil(((group + 1) * sampleCount) / groups) - Math.ceil((group * sampleCount) / groups)
    const chiSquare = (cells: Float64Array, expect: (row: number, column: number) => number) =>
      cells.reduce((sum, count, i) => {
        const expected = expect(Math.floor(i / groups), i % groups)
        return expected === 0 ? sum : sum + (count - expected) ** 2 / expected
      }, 0)
    // About 121 to 143 degrees of freedom; the 99.99 % points are 186 to 213.
    const share = (row: number, column: number) => (size(row) * size(column)) / sampleCount
    assert.ok(chiSquare(places, (row, column) => epochs * share(row, column)) < 213)
    const ordered = sampleCount * (sampleCount - 1)
    const pairShare = (row: number, column: number) =>
      (paired * (size(row) * size(column) - (row === column ? size(row) : 0))) / ordered
    assert.ok(chiSquare(pairs, pairShare) < 213)
  })
}

test('the orders of neighbouring epochs and seeds share no more than chance', () => {
  const n = 10_000
  const base = shuffleSamples({ sampleCount: n, seed: 5, epoch: 0 })
  for (const [seed, epoch] of [
    [5, 1],
    [6, 0],
    [6, 1],
  ] as const) {
    const other = shuffleSamples({ sampleCount: n, seed, epoch })
    const same = other.filter((sample, i) => sample === base[i]).length
    assert.ok(same < 10, `${same} of ${n} samples stand at the same place`) // Poisson with mean 1
  }
})
