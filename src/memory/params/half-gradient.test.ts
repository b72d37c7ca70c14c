import assert from 'node:assert/strict'
import { test } from 'node:test'
import { decodeHalfGradient, encodeHalfGradient } from './half-gradient.js'
import { layOutParameters } from './plan/parameter-layout.js'

const LAYOUT = layOutParameters([
  { name: 'tiny', shape: [1001], layer: 0 },
  { name: 'huge', shape: [3, 5], layer: 0 },
  { name: 'usual', shape: [300_000], layer: 1 },
  { name: 'zero', shape: [7], layer: 2 },
])
const SIZES = [1e-30, 1e30, 1e-3, 0]

function makeGradient(): Float32Array {
  const gradient = new Float32Array(LAYOUT.length)
  for (const [index, { offset, length }] of LAYOUT.slots.entries())
    for (let at = 0; at < length; at++)
      gradient[offset + at] = SIZES[index]! * Math.sin(1 + at) * 2 ** -((at * 7) % 45)
  return gradient
}

test('a gradient as scaled halves keeps every value to 2^-11 of itself plus 2^-39 of its parameter’s largest', () => {
  const gradient = makeGradient()
  const { exponents, halves } = encodeHalfGradient(LAYOUT, gradient)
  const back = decodeHalfGradient(LAYOUT, exponents, halves)
  for (const { name, offset, length } of LAYOUT.slots) {
    const values = gradient.subarray(offset, offset + length)
    const largest = values.reduce((most, value) => Math.max(most, Math.abs(value)), 0)
    for (const [at, value] of values.entries()) {
      const error = Math.abs(back[offset + at]! - value)
      const limit = 2 ** -11 * Math.abs(value) + 2 ** -39 * largest
      assert.ok(error <= limit, `${name}[${at}]: ${value} became ${back[offset + at]}`)
    }
  }
})

test('the largest magnitude of a parameter uses the top of the range, and no other parameter’s', () => {
  const { exponents, halves } = encodeHalfGradient(LAYOUT, makeGradient())
  for (const { name, offset, length } of LAYOUT.slots.slice(0, 3)) {
    const bits = halves.subarray(offset, offset + length).map((half) => half & 0x7fff)
    const most = bits.reduce((largest, half) => Math.max(largest, half), 0)
    assert.ok(most >= 0x7400 && most <= 0x7800, `${name}: between 2^14 and 2^15`)
  }
  assert.equal(exponents[3], 0)
})

test('what is not finite stays so, in its place', () => {
  const gradient = makeGradient()
  gradient[LAYOUT.slots[2]!.offset + 5] = Number.NaN
  gradient[LAYOUT.slots[1]!.offset] = Number.NEGATIVE_INFINITY
  const { exponents, halves } = encodeHalfGradient(LAYOUT, gradient)
  const back = decodeHalfGradient(LAYOUT, exponents, halves)
  assert.ok(Number.isNaN(back[LAYOUT.slots[2]!.offset + 5]))
  assert.equal(back[LAYOUT.slots[1]!.offset], Number.NEGATIVE_INFINITY)
})
