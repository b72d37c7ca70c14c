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
const clean = (...amaxes: number[]) => ({ kind: 'clean', wireType: 'fp16', amaxes }) as const
const shown = (...amaxes: number[]) => ({ kind: 'clean', wireType: 'fp32', amaxes }) as const
const redone = (...amaxes: number[]) => ({ kind: 'redone', amaxes }) as const
const settled = (...amaxes: number[]): ScaleState => advanceScale(FIRST_SCALE, shown(...amaxes))
const wireOf = (state: ScaleState) => planWire(state, BUCKET).wireType

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

test('the first exchange is in fp32, the next in fp16 with the scales that the first one showed', () => {
  assert.deepEqual(planWire(FIRST_SCALE, BUCKET), { wireType: 'fp32', exponents: [] })
  assert.deepEqual(planWire(settled(1, 2 ** -40), BUCKET), { wireType: 'fp16', exponents: [11, 51] })
})

test('a tensor below 4 KiB alone in its bucket stays fp32', () => {
  assert.equal(planWire(settled(1), { elements: 1023, tensors: 1 }).wireType, 'fp32')
  assert.equal(planWire(settled(1), { elements: 1024, tensors: 1 }).wireType, 'fp16')
  assert.equal(planWire(settled(1), { elements: 512, tensors: 2 }).wireType, 'fp16')
})

for (const { name, outcome, exponent, isLooking } of [
  { name: 'that grew shrinks it at once', outcome: clean(8), exponent: 8, isLooking: false },
  { name: 'a thousandth as large leaves it alone', outcome: clean(2 ** -10), exponent: 11, isLooking: false },
  { name: 'too small for it asks for a look', outcome: clean(2 ** -12), exponent: 11, isLooking: true },
  { name: 'of zeros asks for a look', outcome: clean(0), exponent: 11, isLooking: true },
  { name: 'that was repeated in fp32 asks for a look', outcome: redone(1e9), exponent: 11, isLooking: true },
  { name: 'that is small in fp32 sets it', outcome: shown(2 ** -40), exponent: 51, isLooking: false },
  { name: 'that is large in fp32 sets it', outcome: shown(2 ** 40), exponent: -29, isLooking: false },
  { name: 'of zeros in fp32 makes it the largest', outcome: shown(0), exponent: 117, isLooking: false },
  {
    name: 'below what any exponent lifts stays fp32',
    outcome: shown(2 ** -140),
    exponent: 117,
    isLooking: true,
  },
] as const)
  test(`a part ${name}`, () => {
    const next = advanceScale(settled(1), outcome)
    assert.deepEqual([next.exponents, next.isLooking], [[exponent], isLooking])
  })

test('a true inf or NaN leaves the scale alone', () => {
  assert.deepEqual(advanceScale(settled(1), { kind: 'not finite' }), settled(1))
})

test('parts have exponents of their own', () => {
  const next = advanceScale(settled(1, 2 ** -30, 0), clean(8, 2 ** -29, 2 ** -110))
  assert.deepEqual(next.exponents, [8, 40, 117])
  assert.equal(next.isLooking, false)
})

test('an exponent with room grows by one in 16 exchanges', () => {
  let state = settled(8)
  const seen: number[] = []
  for (let step = 0; step < 60; step++) {
    state = advanceScale(state, clean(1))
    seen.push(state.exponents[0]!)
  }
  assert.deepEqual([...new Set(seen)], [8, 9, 10, 11])
  assert.equal(seen.lastIndexOf(9) - seen.indexOf(9), 15)
})

test('one spike costs its own repetition and a look, and leaves the exponent as it was', () => {
  const spiked = advanceScale(settled(1), redone(1e9))
  assert.equal(wireOf(spiked), 'fp32')
  const after = advanceScale(spiked, shown(1))
  assert.deepEqual(planWire(after, BUCKET), { wireType: 'fp16', exponents: [11] })
})

test('a bucket that is too large twice within 32 exchanges is in fp32 until 32 have been calm', () => {
  const spike = (state: ScaleState) => advanceScale(advanceScale(state, redone(1e9)), shown(1))
  let state = spike(spike(settled(1)))
  for (let step = 1; step < 32; step++) {
    assert.equal(wireOf(state), 'fp32', `${step}`)
    state = advanceScale(state, shown(1))
  }
  assert.equal(wireOf(state), 'fp16')
  let restless = advanceScale(spike(spike(settled(1))), shown(1e9))
  restless = advanceScale(restless, shown(1))
  assert.equal(restless.sinceOverflow, 1)
  let patient = spike(settled(1))
  for (let step = 0; step < 32; step++) patient = advanceScale(patient, clean(1))
  assert.equal(wireOf(spike(patient)), 'fp16')
})

test('averaging multiplies by powers of two before the sum and by the rest after', () => {
  assert.deepEqual(planAveraging(8), { shift: -3, factor: 1 })
  assert.deepEqual(planAveraging(3), { shift: -2, factor: 4 / 3 })
  assert.deepEqual(planAveraging(1), { shift: -0, factor: 1 })
})

test('the scale does what the vectors say, which the Python client is held to as well', () => {
  const file = new URL('../../../fixtures/exchange/scale-vectors.json', import.meta.url)
  const { sequences } = JSON.parse(readFileSync(file, 'utf8')) as {
    sequences: { kind: string; wireType: string; amaxes: number[]; scale: object; wire: object }[][]
  }
  for (const sequence of sequences) {
    let scale = FIRST_SCALE
    for (const { kind, wireType, amaxes, ...expected } of sequence) {
      scale = advanceScale(scale, { kind, wireType, amaxes } as ExchangeOutcome)
      assert.deepEqual({ scale, wire: planWire(scale, { elements: 5000, tensors: 3 }) }, expected)
    }
  }
})
