import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import {
  advanceScale,
  type ExchangeOutcome,
  FIRST_SCALE,
  planAveraging,
  planWire,
  type ScaleState,
  targetExponent,
} from './scale.js'

const BUCKET = { elements: 10_000, tensors: 3 }
const clean = (amax: number) => ({ kind: 'clean', amax }) as const
const settled = (amax: number): ScaleState => advanceScale(FIRST_SCALE, clean(amax))

test('the largest value lands in (2¹⁰, 2¹¹], edges included', () => {
  for (const amax of [1, 0.75, 2 ** -20, 2 ** -20 * (1 + 2 ** -23), 1e-30, 65504, 3.4e38, 1e-45]) {
    const exponent = targetExponent(amax)
    if (exponent === 117) continue
    assert.ok(amax * 2 ** exponent <= 2 ** 11, `${amax}`)
    assert.ok(amax * 2 ** exponent > 2 ** 10, `${amax}`)
  }
  assert.equal(targetExponent(1e-45), 117)
  assert.equal(targetExponent(3.4e38), -117)
})

test('the first exchange is in fp32, the next in fp16 with the scale that the first one showed', () => {
  assert.deepEqual(planWire(FIRST_SCALE, BUCKET), { wireType: 'fp32', exponent: 0 })
  assert.deepEqual(planWire(settled(1), BUCKET), { wireType: 'fp16', exponent: 11 })
})

test('a tensor below 4 KiB alone in its bucket stays fp32', () => {
  assert.equal(planWire(settled(1), { elements: 1023, tensors: 1 }).wireType, 'fp32')
  assert.equal(planWire(settled(1), { elements: 1024, tensors: 1 }).wireType, 'fp16')
  assert.equal(planWire(settled(1), { elements: 512, tensors: 2 }).wireType, 'fp16')
})

test('the scale shrinks at once and doubles at most every 16 exchanges', () => {
  let state = settled(1)
  state = advanceScale(state, clean(8))
  assert.equal(state.exponent, 8)
  const seen: (number | undefined)[] = []
  for (let step = 0; step < 40; step++) {
    state = advanceScale(state, clean(1))
    seen.push(state.exponent)
  }
  assert.deepEqual([...new Set(seen)], [8, 9, 10])
  assert.equal(seen.lastIndexOf(9) - seen.indexOf(9), 15)
})

test('an overflow divides the scale by 2¹⁰, a true inf or NaN leaves it alone', () => {
  assert.equal(advanceScale(settled(1), { kind: 'redone', amax: 20 }).exponent, 1)
  assert.deepEqual(advanceScale(settled(1), { kind: 'not finite' }), settled(1))
})

test('zeros say nothing about the scale', () => {
  assert.equal(advanceScale(settled(1), clean(0)).exponent, 11)
  assert.equal(advanceScale(FIRST_SCALE, clean(0)).exponent, undefined)
})

test('a bucket that jumps by more than 2⁵ twice within 32 exchanges goes to bf16', () => {
  let state = settled(1)
  state = advanceScale(state, clean(33))
  assert.equal(planWire(state, BUCKET).wireType, 'fp16')
  state = advanceScale(state, clean(1))
  assert.equal(planWire(state, BUCKET).wireType, 'bf16')
  let patient = advanceScale(settled(1), clean(33))
  for (let step = 0; step < 33; step++) patient = advanceScale(patient, clean(33))
  assert.equal(planWire(advanceScale(patient, clean(1)), BUCKET).wireType, 'fp16')
})

test('averaging multiplies by powers of two before the sum and by the rest after', () => {
  assert.deepEqual(planAveraging(8), { shift: -3, factor: 1 })
  assert.deepEqual(planAveraging(3), { shift: -2, factor: 4 / 3 })
  assert.deepEqual(planAveraging(1), { shift: -0, factor: 1 })
})

test('the scale does what the vectors say, which the Python client is held to as well', () => {
  const file = new URL('../../../fixtures/exchange/scale-vectors.json', import.meta.url)
  const { sequences } = JSON.parse(readFileSync(file, 'utf8')) as {
    sequences: { kind: string; amax: number }[][]
  }
  for (const sequence of sequences) {
    let scale = FIRST_SCALE
    for (const { kind, amax, ...expected } of sequence) {
      scale = advanceScale(scale, { kind, amax } as ExchangeOutcome)
      // A state without exponent is written without the key.
      const found = { scale, wire: planWire(scale, { elements: 5000, tensors: 2 }) }
      assert.deepEqual(JSON.parse(JSON.stringify(found)), expected)
    }
  }
})
