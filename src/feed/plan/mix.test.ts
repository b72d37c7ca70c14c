import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { countMixed, type MixPart, planMixedOrder } from './mix.js'
import { planOrder } from './order.js'

const part = (name: string, sampleCount: number, times: number): MixPart => ({ name, sampleCount, times })
const samplesOf = (parts: readonly MixPart[], seed: number, epoch: number) => {
  const sampleCount = countMixed(parts)
  const order = planMixedOrder(planOrder({ sampleCount, seed, epoch, kind: 'shuffle' }), parts, seed)
  return Array.from({ length: sampleCount }, (_, position) => order.sampleAt(position))
}
const countVisits = (samples: readonly number[], sampleCount: number) => {
  const visits = new Array<number>(sampleCount).fill(0)
  for (const sample of samples) visits[sample]!++
  return visits
}

test('an epoch of a mix visits each sample as often as its part says', () => {
  const parts = [part('a', 10, 1), part('b', 7, 3), part('c', 5, 0)]
  const visits = countVisits(samplesOf(parts, 1, 0), 22)
  assert.deepEqual(visits, [...Array(10).fill(1), ...Array(7).fill(3), ...Array(5).fill(0)])
})

test('a fraction visits other samples in each epoch, and all of them equally often over the epochs', () => {
  const parts = [part('a', 100, 0.25), part('b', 30, 1.5)]
  const total = new Array<number>(130).fill(0)
  const firsts = new Set<string>()
  for (let epoch = 0; epoch < 4; epoch++) {
    const samples = samplesOf(parts, 9, epoch)
    assert.equal(samples.length, 25 + 45)
    firsts.add(
      samples
        .filter((sample) => sample < 100)
        .toSorted((x, y) => x - y)
        .join(),
    )
    for (const sample of samples) total[sample]!++
  }
  assert.equal(firsts.size, 4)
  assert.deepEqual(total, [...Array(100).fill(1), ...Array(30).fill(6)])
})

test('a mix of everything once is the order without a mix', () => {
  assert.deepEqual(samplesOf([part('a', 4, 1), part('b', 9, 1)], 3, 2), samplesOf([part('c', 13, 1)], 3, 2))
})

test('the order of every shared mix is unchanged, or resumed jobs repeat samples', () => {
  const { vectors } = JSON.parse(
    readFileSync(new URL('../../../fixtures/feed/mix-vectors.json', import.meta.url), 'utf8'),
  ) as { vectors: { parts: MixPart[]; seed: number; epoch: number; head: number[]; sha256: string }[] }
  assert.equal(vectors.length, 6)
  for (const { parts, seed, epoch, head, sha256 } of vectors) {
    const samples = Uint32Array.from(samplesOf(parts, seed, epoch))
    assert.deepEqual([...samples.slice(0, 8)], head)
    assert.equal(createHash('sha256').update(samples).digest('hex'), sha256, JSON.stringify(parts))
  }
})
