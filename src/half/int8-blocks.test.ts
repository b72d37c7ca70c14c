import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openCodec } from './codec.js'
import { Int8Blocks, RANDOM_BYTES } from './int8-blocks.js'
import { BLOCK_BYTES, BLOCK_VALUES } from './plan-blocks.js'

function openBlocks(values: Float32Array) {
  const codec = openCodec(values.length * 12 + RANDOM_BYTES + 64)
  const blocks = new Int8Blocks(codec)
  const [source, wire, target] = [values.length * 4, values.length * 4, values.length * 4].map(codec.allocate)
  new Float32Array(codec.memory, source, values.length).set(values)
  blocks.encode(source!, wire!, values.length)
  const found = new Float32Array(codec.memory, target!, values.length)
  return { blocks, found, wire: wire!, target: target!, view: new DataView(codec.memory, wire) }
}

function drawBlocks(sizes: readonly number[]): Float32Array {
  return Float32Array.from({ length: sizes.length * BLOCK_VALUES }, (_, at) => {
    return (Math.random() * 2 - 1) * sizes[Math.floor(at / BLOCK_VALUES)]!
  })
}

test('a value is rounded up or down by chance, within the largest of its block / 126, at any size', () => {
  const sizes = Array.from({ length: 400 }, (_, at) => 2 ** ((at % 200) - 90))
  const values = drawBlocks(sizes)
  const { blocks, found, wire, target } = openBlocks(values)
  blocks.decode(wire, target, values.length)
  let [sum, moved] = [0, 0]
  for (const [at, value] of values.entries()) {
    const error = (found[at]! - value) / sizes[Math.floor(at / BLOCK_VALUES)]!
    assert.ok(Math.abs(error) <= 1 / 126, `${value} became ${found[at]}`)
    sum += error
    moved += Math.abs(error) > 1 / 1000 ? 1 : 0
  }
  assert.ok(Math.abs(sum / values.length) < 1 / 127 / 50, `off by ${sum / values.length} on average`)
  assert.ok(moved > values.length / 2)
})

test('the same values are the same bytes, and each rank adds its share of the mean', () => {
  const values = drawBlocks([3, 1e-20])
  const [first, second] = [openBlocks(values), openBlocks(values)]
  const bytes = ({ view }: typeof first) => Buffer.from(view.buffer, view.byteOffset, 2 * BLOCK_BYTES)
  assert.ok(bytes(first).equals(bytes(second)))
  const { blocks, found, wire, target } = first
  blocks.decode(wire, target, values.length)
  const alone = found.slice()
  blocks.accumulate(target, wire, values.length, 0.5)
  assert.deepEqual(
    found,
    alone.map((value) => value * 1.5),
  )
})

test('a block with inf or NaN is NaN, zeros stay, and neither touches its neighbors', () => {
  for (const bad of [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, Number.NaN]) {
    const values = drawBlocks([1, 1, 0, 1e-38])
    values[BLOCK_VALUES + 5] = bad
    const { blocks, found, wire, target, view } = openBlocks(values)
    blocks.decode(wire, target, values.length)
    assert.ok(found.subarray(BLOCK_VALUES, 2 * BLOCK_VALUES).every(Number.isNaN))
    assert.ok(found.subarray(2 * BLOCK_VALUES).every((value) => value === 0))
    assert.ok(found.subarray(0, BLOCK_VALUES).every((value, at) => Math.abs(value - values[at]!) < 1 / 126))
    assert.equal(blocks.areFinite(wire, values.length), false)
    assert.equal(blocks.areFinite(wire, BLOCK_VALUES), true)
    assert.ok(Number.isNaN(view.getFloat32(BLOCK_BYTES + BLOCK_VALUES, true)))
  }
})
