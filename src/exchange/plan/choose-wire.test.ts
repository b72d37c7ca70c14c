import assert from 'node:assert/strict'
import { test } from 'node:test'
import { chooseWire } from './choose-wire.js'
import type { Gradient } from './gradient.js'

const MIB = 1024 * 1024
// The setup measured in docs/benchmarks/exchange.md: 14 layers of 1 Mi values in 165 ms, two ranks, gloo.
const gradients: Gradient[] = Array.from({ length: 14 }, (_, layer) => ({
  name: `layer${layer}`,
  elements: MIB,
  layer,
  readySeconds: ((layer + 1) * 0.165) / 14,
}))
const job = (gigabits: number) => ({
  gradients,
  backwardSeconds: 0.165,
  ranks: 2,
  link: { alphaSeconds: 200e-6, bandwidthBytesPerSecond: (gigabits * 1e9) / 8 },
  gradientBytes: 4,
})
const CORE = 0.8e9
const GPU = 400e9

for (const { name, input, halfValuesPerSecond, wire, words } of [
  {
    name: 'takes fp16 where the link is slow',
    input: job(1),
    halfValuesPerSecond: CORE,
    wire: 'fp16',
    words: /^fp16: at 1\.0 Gb\/s half the bytes save more than the 18\.4 ms of converting/,
  },
  {
    name: 'takes fp32 where the bytes hide behind backward and converting does not',
    input: job(10),
    halfValuesPerSecond: CORE,
    wire: 'fp32',
    words: /^fp32, no compression: at 10\.0 Gb\/s converting costs 18\.4 ms/,
  },
  {
    name: 'takes fp16 on that link where converting is nearly free',
    input: job(10),
    halfValuesPerSecond: GPU,
    wire: 'fp16',
    words: /^fp16/,
  },
  {
    name: 'takes fp16 and says so where converting was not measured',
    input: job(10),
    halfValuesPerSecond: undefined,
    wire: 'fp16',
    words: /was not measured/,
  },
  {
    name: 'takes fp16 for gradients that are halves',
    input: { ...job(10), gradientBytes: 2 },
    halfValuesPerSecond: CORE,
    wire: 'fp16',
    words: /half precision already/,
  },
  {
    name: 'compresses nothing for one rank',
    input: { ...job(1), ranks: 1 },
    halfValuesPerSecond: CORE,
    wire: 'fp32',
    words: /nothing/,
  },
] as const) {
  test(`chooseWire ${name}`, () => {
    const choice = chooseWire(input, halfValuesPerSecond)
    assert.equal(choice.wire, wire, choice.explanation)
    assert.match(choice.explanation, words)
  })
}

test('chooseWire changes its mind once, from fp16 to fp32, as the link becomes faster', () => {
  const wires = [0.1, 0.5, 1, 2, 3, 4, 6, 10, 25, 100].map((gigabits) => chooseWire(job(gigabits), CORE).wire)
  const last = wires.lastIndexOf('fp16')
  assert.ok(last >= 0 && last < wires.length - 1, wires.join(' '))
  assert.ok(!wires.slice(0, last).includes('fp32'), wires.join(' '))
})
