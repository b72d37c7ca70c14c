import assert from 'node:assert/strict'
import { randomInt } from 'node:crypto'
import { test } from 'node:test'
import { random } from '../local-sessions.test.fixture.js'
import { chooseWire } from './choose-wire.js'
import { countElements, type Gradient } from './gradient.js'
import { planExchange } from './plan-exchange.js'
import { tensorBytes, WIRE_TYPES } from './wire-type.js'

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
const ALONE = { ranksPerHost: 1, levels: 1 } as const
const HALVES = { halfValuesPerSecond: 0.8e9 }
const CORE = { ...HALVES, int8ValuesPerSecond: 0.4e9 }
const GPU = { halfValuesPerSecond: 400e9 }

for (const { name, input, rates, wire, words } of [
  {
    name: 'takes fp16 where the link is slow',
    input: job(1),
    rates: HALVES,
    wire: 'fp16',
    words: /^fp16: at 1\.0 Gb\/s sending half the bytes saves more than converting costs \(18\.4 ms\)/,
  },
  {
    name: 'takes fp32 where the bytes hide behind backward and converting does not',
    input: job(10),
    rates: HALVES,
    wire: 'fp32',
    words: /^fp32, no compression: at 10\.0 Gb\/s converting costs 18\.4 ms/,
  },
  {
    name: 'takes fp16 on that link where converting is nearly free',
    input: job(10),
    rates: GPU,
    wire: 'fp16',
    words: /^fp16/,
  },
  {
    name: 'takes fp16 and says so where converting was not measured',
    input: job(10),
    rates: {},
    wire: 'fp16',
    words: /was not measured.* measure the link with dsc\.exchange\.probe_link/,
  },
  {
    name: 'takes fp16 for gradients that are halves',
    input: { ...job(10), gradientBytes: 2 },
    rates: HALVES,
    wire: 'fp16',
    words: /half precision already/,
  },
  {
    name: 'compresses nothing for one rank',
    input: { ...job(1), ranks: 1 },
    rates: HALVES,
    wire: 'fp32',
    words: /nothing/,
  },
  {
    name: 'takes int8 where the link is slow and its rate is known',
    input: job(1),
    rates: CORE,
    wire: 'int8',
    words:
      /^int8: at 1\.0 Gb\/s sending 25 % of the bytes saves more than converting costs \(36\.7 ms\); .* with fp16 and .* with fp32\.$/,
  },
  {
    name: 'says that it did not compare int8 without its rate',
    input: job(1),
    rates: HALVES,
    wire: 'fp16',
    words: /int8 was not compared: the link file has no rate for it/,
  },
  {
    name: 'weighs int8 against gradients that are halves already',
    input: { ...job(1), gradientBytes: 2 },
    rates: CORE,
    wire: 'int8',
    words: /sending 51 % of the bytes/,
  },
  {
    name: 'leaves gradients that are halves as they are on a fast link',
    input: { ...job(100), gradientBytes: 2 },
    rates: CORE,
    wire: 'fp16',
    words: /^fp16: the gradients are in half precision already; .* instead of .* with int8\.$/,
  },
] as const) {
  test(`chooseWire ${name}`, () => {
    const choice = chooseWire(input, rates, ALONE)
    assert.equal(choice.wire, wire, choice.explanation)
    assert.match(choice.explanation, words)
  })
}

test('chooseWire changes its mind once per type, towards more bytes, as the link becomes faster', () => {
  const wires = [0.1, 0.5, 1, 2, 3, 4, 6, 10, 25, 100].map(
    (gigabits) => chooseWire(job(gigabits), CORE, ALONE).wire,
  )
  assert.deepEqual([...new Set(wires)], ['int8', 'fp16', 'fp32'], wires.join(' '))
  assert.deepEqual(
    wires,
    wires.toSorted((a, b) => WIRE_TYPES.indexOf(b) - WIRE_TYPES.indexOf(a)),
  )
})

/** One gradient and no latency: what a type takes is its conversion and then its bytes. */
const single = (ranks: number, bandwidthBytesPerSecond: number) => ({
  gradients: [{ name: 'only', elements: MIB, layer: 0, readySeconds: 0.01 }],
  backwardSeconds: 0.01,
  ranks,
  link: { alphaSeconds: 0, bandwidthBytesPerSecond },
  gradientBytes: 4,
})

for (const ranks of [2, 4, 8])
  test(`chooseWire switches between types at the computed speed of the link, with ${ranks} ranks`, () => {
    const perByte = (2 * (ranks - 1)) / ranks // a value's bytes cross the link this often
    const [half, int8] = [1 / CORE.halfValuesPerSecond, 1 / CORE.int8ValuesPerSecond]
    for (const [bytesPerSecond, slower, faster] of [
      [(perByte * (2 - 260 / 256)) / (int8 - half), 'int8', 'fp16'],
      [(perByte * (4 - 2)) / half, 'fp16', 'fp32'],
    ] as const) {
      assert.equal(chooseWire(single(ranks, bytesPerSecond * 0.99), CORE, ALONE).wire, slower)
      assert.equal(chooseWire(single(ranks, bytesPerSecond * 1.01), CORE, ALONE).wire, faster)
    }
  })

test('chooseWire counts the blocks of small tensors, and what ranks of one host send each other past it', () => {
  const small = { ...single(2, 1e8), gradients: job(1).gradients.map((one) => ({ ...one, elements: 100 })) }
  assert.equal(chooseWire(small, { ...CORE, int8ValuesPerSecond: 0.8e9 }, ALONE).wire, 'fp16')
  const rates = { halfValuesPerSecond: 1e12, int8ValuesPerSecond: 1e12 }
  const spread = chooseWire(single(8, 1e8), rates, ALONE)
  const dense = chooseWire(single(8, 1e8), rates, { ranksPerHost: 4, levels: 1 })
  const seconds = (choice: typeof spread, wire: string) =>
    choice.candidates.find((one) => one.wire === wire)!.seconds - 0.01
  assert.equal(seconds(dense, 'fp16'), seconds(spread, 'fp16'))
  const ratio = seconds(dense, 'int8') / seconds(spread, 'int8')
  assert.ok(Math.abs(ratio - (4 * 4 + 7) / 14) < 0.001, `${ratio}`) // two hosts: 16 pairs share a link
  const two = chooseWire(single(2, 1e8), rates, { ranksPerHost: 4, levels: 2 }) // one rank of each host swaps
  assert.equal(two.wire, 'int8')
  assert.equal(seconds(two, 'int8'), seconds(chooseWire(single(2, 1e8), rates, ALONE), 'int8'))
})

test('chooseWire believes exchanges that were measured between as many ranks, in one level', () => {
  const exchanges = {
    ranks: 4,
    fp16: { callSeconds: 1e-3, secondsPerValue: 20e-9 },
    int8: { callSeconds: 2e-3, secondsPerValue: 50e-9 },
  }
  const rates = { halfValuesPerSecond: 1e12, int8ValuesPerSecond: 1e12, exchanges }
  const measured = chooseWire(single(4, 1e8), rates, ALONE)
  const seconds = measured.candidates.map((one) => [one.wire, one.seconds.toFixed(4)])
  assert.deepEqual(seconds, [
    ['fp16', (0.01 + 1e-3 + 20e-9 * MIB).toFixed(4)],
    ['int8', (0.01 + 2e-3 + 50e-9 * MIB).toFixed(4)],
    ['fp32', (0.01 + (1.5 * 4 * MIB) / 1e8).toFixed(4)],
  ])
  // Conversion is in the exchange: one that was measured slower, as on a busy machine, delays by half of that at most.
  const busy = chooseWire(single(4, 1e8), { ...rates, int8ValuesPerSecond: 1 }, ALONE)
  assert.deepEqual(
    busy.candidates.map((one) => one.seconds.toFixed(4)),
    [seconds[0]![1], (0.01 + 2e-3 + 75e-9 * MIB).toFixed(4), seconds[2]![1]].sort(),
  )
  const { exchanges: _, ...modeled } = rates
  for (const [ranks, placement] of [
    [2, ALONE],
    [4, { ranksPerHost: 4, levels: 2 }],
  ] as const)
    assert.deepEqual(
      chooseWire(single(ranks, 1e8), rates, placement),
      chooseWire(single(ranks, 1e8), modeled, placement),
    )
})

test('chooseWire never takes a type that the model says is slower, on any job and link', () => {
  const seed = randomInt(2 ** 31)
  console.log(`seed ${seed}`)
  const next = random(seed)
  const between = (low: number, high: number) => low * (high / low) ** (next() + 0.5)
  for (let run = 0; run < 300; run++) {
    let readySeconds = 0
    const own = Array.from({ length: Math.ceil(between(1, 40)) }, (_, layer) => {
      readySeconds += between(1e-5, 1e-2)
      return { name: `${layer}`, elements: Math.ceil(between(1, 1e7)), layer, readySeconds }
    })
    const link = { alphaSeconds: between(1e-6, 1e-3), bandwidthBytesPerSecond: between(1e7, 1e11) }
    const ranks = Math.ceil(between(2, 64))
    const input = { gradients: own, backwardSeconds: readySeconds, ranks, link, gradientBytes: 4 }
    const rates = {
      halfValuesPerSecond: between(1e8, 1e12),
      int8ValuesPerSecond: between(1e8, 1e12),
    }
    const { wire, candidates } = chooseWire(input, rates, ALONE)
    const perValue = { fp32: 0, fp16: 1 / rates.halfValuesPerSecond, int8: 1 / rates.int8ValuesPerSecond }
    const modeled = WIRE_TYPES.map((type) => {
      let before = 0
      const gradients = own.map((one) => {
        before += one.elements
        return { ...one, readySeconds: one.readySeconds + before * perValue[type] }
      })
      const bytes = own.reduce((sum, { elements }) => sum + tensorBytes(type, elements), 0)
      const wireBytes = bytes / countElements(own)
      const { alternatives } = planExchange({ ...input, gradients, wireBytes })
      return { type, seconds: alternatives.find(({ name }) => name === 'this plan')!.finishSeconds }
    })
    const best = Math.min(...modeled.map(({ seconds }) => seconds))
    assert.equal(modeled.find(({ type }) => type === wire)!.seconds, best, `run ${run}`)
    assert.deepEqual(new Set(candidates.map((one) => one.wire)), new Set(WIRE_TYPES))
  }
})
