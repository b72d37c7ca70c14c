import assert from 'node:assert/strict'
import { test } from 'node:test'
import { WebAssembly } from '../wasm/runtime.js'
import { openCodec } from './codec.js'

const ALL_HALVES = 65536

/** The value of a half, by the definition of the format. */
function halfValue(bits: number): number {
  const sign = bits & 0x8000 ? -1 : 1
  const exponent = (bits >> 10) & 31
  const fraction = bits & 0x3ff
  if (exponent === 31) return fraction === 0 ? sign * Number.POSITIVE_INFINITY : Number.NaN
  return exponent === 0 ? sign * fraction * 2 ** -24 : sign * (1024 + fraction) * 2 ** (exponent - 25)
}

/** Nearest half of a float, ties to even, by search: slow and obviously right. */
function nearestHalf(value: number): number {
  if (Number.isNaN(value)) return 0x7e00
  const sign = value < 0 || Object.is(value, -0) ? 0x8000 : 0
  const magnitude = Math.abs(value)
  if (magnitude >= 65520) return sign | 0x7c00
  let [low, high] = [0, 0x7c00]
  while (high - low > 1) {
    const middle = (low + high) >> 1
    if (halfValue(middle) <= magnitude) low = middle
    else high = middle
  }
  const upper = high === 0x7c00 ? 65536 : halfValue(high)
  const [below, above] = [magnitude - halfValue(low), upper - magnitude]
  return sign | (below < above || (below === above && low % 2 === 0) ? low : high)
}

function openBuffers(count: number) {
  const codec = openCodec(count * 12 + 64)
  const [floats, halves, others] = [
    codec.allocate(count * 4),
    codec.allocate(count * 2),
    codec.allocate(count * 2),
  ]
  return {
    codec,
    floats,
    halves,
    others,
    floatView: new Float32Array(codec.memory, floats, count),
    halfView: new Uint16Array(codec.memory, halves, count),
    otherView: new Uint16Array(codec.memory, others, count),
  }
}

test('every one of the 65 536 halves becomes its exact float and comes back as it was', () => {
  const { codec, floats, halves, others, floatView, halfView, otherView } = openBuffers(ALL_HALVES)
  for (let bits = 0; bits < ALL_HALVES; bits++) halfView[bits] = bits
  codec.kernels.decodeHalf(halves, floats, ALL_HALVES, 1)
  codec.kernels.encodeHalf(floats, others, ALL_HALVES, 1)
  for (let bits = 0; bits < ALL_HALVES; bits++) {
    assert.ok(Object.is(floatView[bits], halfValue(bits)), `${bits} became ${floatView[bits]}`)
    const isNan = Number.isNaN(halfValue(bits))
    if (isNan) assert.ok((otherView[bits]! & 0x7fff) > 0x7c00, `${bits} is no longer NaN`)
    else assert.equal(otherView[bits], bits)
  }
})

test('floats round to the nearest half, ties to even, at every boundary and at random', () => {
  const values: number[] = [
    0,
    -0,
    65504,
    65519.99,
    65520,
    65535,
    1e6,
    2 ** -25,
    2 ** -24,
    2 ** -14,
    1e-45,
    Number.NaN,
  ]
  for (let bits = 0; bits < 0x7c00; bits += 7) {
    const middle = (halfValue(bits) + halfValue(bits + 1)) / 2
    values.push(middle, middle * (1 + 2 ** -22), -middle * (1 - 2 ** -22))
  }
  const seed = Math.floor(Math.random() * 2 ** 31)
  console.log(`seed ${seed}`)
  let state = seed
  const raw = new DataView(new ArrayBuffer(4))
  for (let index = 0; index < 200_000; index++) {
    state = (Math.imul(state, 1664525) + 1013904223) | 0
    raw.setInt32(0, state)
    values.push(raw.getFloat32(0))
  }
  while (values.length % 8) values.push(0)
  const { codec, floats, halves, floatView, halfView } = openBuffers(values.length)
  floatView.set(values)
  codec.kernels.encodeHalf(floats, halves, values.length, 1)
  for (const [index, value] of floatView.entries()) {
    const found = halfView[index]!
    if (Number.isNaN(value)) assert.ok((found & 0x7fff) > 0x7c00)
    else assert.equal(found, nearestHalf(value), `${value}`)
  }
})

test('scaled floats are added in fp32 and rounded once, bit by bit, in both narrow types', () => {
  const count = 4096
  const { codec, floats, halves, floatView, halfView } = openBuffers(count)
  for (let round = 0; round < 16; round++) {
    const factor = 2 ** ((round % 5) - 3)
    const exponent = round - 12
    for (let at = 0; at < count; at++) {
      halfView[at] = (at * 40503 + round * 7919) & 0xffff
      floatView[at] = (((at * 2654435761) % 1000003) / 500000 - 1) * 2 ** exponent
    }
    const expected = [...halfView].map((bits, at) =>
      nearestHalf(Math.fround(halfValue(bits) + Math.fround(floatView[at]! * factor))),
    )
    codec.kernels.addHalf(halves, floats, count, factor)
    for (const [at, bits] of expected.entries()) {
      if (bits === 0x7e00)
        assert.ok((halfView[at]! & 0x7fff) > 0x7c00, `round ${round}, ${at} is no longer NaN`)
      else assert.equal(halfView[at], bits, `round ${round}, ${at}`)
    }
  }
  // Two floats that a narrow type would lose before the sum, and a sum beyond it.
  halfView.set([0x3f80, 0x3f80, 0x7f7f, 0x8000, 0x7fc0, 0x7f80, 0xff80, 0x0001])
  floatView.set([1 + 2 ** -8, 3, 3.4e38, -0, 1, Number.NEGATIVE_INFINITY, 1, 0])
  codec.kernels.addBrain(halves, floats, 8, 1)
  assert.deepEqual([...halfView.slice(0, 4)], [0x4000, 0x4080, 0x7f80, 0x8000])
  for (const lane of [4, 5]) assert.ok((halfView[lane]! & 0x7fff) > 0x7f80)
  assert.deepEqual([...halfView.slice(6, 8)], [0xff80, 0x0001])
})

test('narrow values are summed in fp32, and floats become bfloat16 rounded to nearest even', () => {
  const { codec, halves, others, halfView, otherView, floats, floatView } = openBuffers(8)
  halfView.set([0x3c00, 0x3c00, 0x7bff, 0x0001, 0x7c00, 0x8000, 0xbc00, 0x7e00])
  otherView.set([0x3c00, 0x1000, 0x7bff, 0x0001, 0xfc00, 0x0000, 0x3c00, 0x3c00])
  codec.kernels.accumulateHalf(floats, halves, 8)
  codec.kernels.accumulateHalf(floats, others, 8)
  assert.deepEqual([...floatView.slice(0, 4)], [2, 1 + 2 ** -11, 131008, 2 ** -23])
  floatView.set([1, -2.5, 1 + 2 ** -8, 1 + 3 * 2 ** -8, 3.4e38, Number.NaN, -0, 1e-40])
  codec.kernels.encodeBrain(floats, halves, 8, 1)
  assert.deepEqual([...halfView.slice(0, 5)], [0x3f80, 0xc020, 0x3f80, 0x3f82, 0x7f80])
  assert.ok((halfView[5]! & 0x7fff) > 0x7f80)
})

test('the maximum shows inf and NaN, whatever their sign', () => {
  const { codec, floats, halves, floatView, halfView } = openBuffers(24)
  floatView.set([1, -3, 2], 14)
  codec.kernels.encodeHalf(floats, halves, 24, 1)
  assert.equal(codec.maximumBits(halves, 24, 2), 0x4200)
  assert.equal(codec.maximumBits(floats, 24, 4), 0x40400000)
  halfView[3] = 0xfc00
  assert.equal(codec.maximumBits(halves, 24, 2), 0x7c00)
  floatView[20] = Number.NaN
  assert.ok(codec.maximumBits(floats, 24, 4) > 0x7f800000)
})

test('an engine without addresses for a memory is a failure that says what to raise', (context) => {
  context.mock.method(WebAssembly, 'Memory', function refuse() {
    throw new RangeError('WebAssembly.Memory(): could not allocate memory')
  })
  assert.throws(() => openCodec(64), { code: 'USAGE', hint: /ulimit -v/ })
})
