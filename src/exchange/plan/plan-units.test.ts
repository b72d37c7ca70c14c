import assert from 'node:assert/strict'
import { test } from 'node:test'
import { findBlocks, planUnits } from './plan-units.js'

/** `count` equal blocks in backward order, with a head that is ready first and an embedding that is ready last. */
function gradientsOf(count: number, elements: number, secondsEach: number) {
  const names = [
    'head.weight',
    ...Array.from({ length: count }, (_, at) => `layers.${count - 1 - at}.w`),
    'token.weight',
  ]
  return names.map((name, layer) => ({ name, elements, layer, readySeconds: secondsEach * (layer + 1) }))
}
const link = (megabits: number, alphaSeconds: number) => ({
  alphaSeconds,
  bandwidthBytesPerSecond: (megabits * 1e6) / 8,
})
const plan = (
  count: number,
  elements: number,
  network: ReturnType<typeof link>,
  gradientWireBytes: 2 | 4 = 2,
) =>
  planUnits({
    gradients: gradientsOf(count, elements, 0.01),
    ranks: 4,
    link: network,
    parameterBytes: 4,
    gradientWireBytes,
  })

test('blocks are what repeats, and what is at the top, in the order of the forward', () => {
  const gradients = ['head.weight', 'h.1.mlp.w', 'h.1.norm.w', 'h.0.mlp.w', 'token.weight', 'position'].map(
    (name, layer) => ({
      name,
      elements: 10,
      layer,
      readySeconds: layer + 1,
    }),
  )
  assert.deepEqual(
    findBlocks(gradients).map(({ modules, elements, backwardSeconds }) => [
      modules[0],
      elements,
      backwardSeconds,
    ]),
    [
      ['', 10, 1],
      ['token', 10, 1],
      ['h.0', 10, 1],
      ['h.1', 20, 2],
      ['head', 10, 1],
    ],
  )
})

for (const { name, planned, size } of [
  { name: 'every block where bytes rule', planned: plan(10, 1e6, link(10_000, 1e-6)), size: 1 },
  { name: 'several blocks where calls are dear', planned: plan(30, 1000, link(10_000, 3e-3)), size: 2 },
]) {
  test(`planUnits makes units of ${name}`, () => {
    if (size === 1) assert.equal(planned.chosen.name, 'every block')
    else assert.ok(planned.units[0]!.modules.length >= size, planned.chosen.name)
    const least = Math.min(...planned.alternatives.map(({ stepMs }) => stepMs))
    assert.ok(planned.chosen.stepMs <= 1.01 * least)
    assert.equal(planned.units.flatMap(({ modules }) => modules).length, size === 1 ? 12 : 32)
  })
}

test('planUnits predicts a step by hand: two units, nothing ahead that could hide', () => {
  // One block and a link so slow that computing does not count: 3 calls of 3/4 of the bytes at 12.5 MB/s.
  const gradients = [{ name: 'layer.weight', elements: 1e6, layer: 0, readySeconds: 1e-6 }]
  const slow = link(100, 0)
  const one = planUnits({ gradients, ranks: 4, link: slow, parameterBytes: 4, gradientWireBytes: 4 })
  const half = planUnits({ gradients, ranks: 4, link: slow, parameterBytes: 4, gradientWireBytes: 2 })
  assert.ok(Math.abs(one.chosen.stepMs - 1000 * ((3 * 0.75 * 4e6) / 12.5e6)) < 0.01)
  assert.ok(Math.abs(half.chosen.stepMs - 1000 * ((2.5 * 0.75 * 4e6) / 12.5e6)) < 0.01)
})

test('planUnits never predicts less than what is computed, nor than what is sent', () => {
  for (const megabits of [10, 1000, 100_000])
    for (const { stepMs, exposedMs } of plan(12, 1e6, link(megabits, 1e-4)).alternatives) {
      const sentMs = 1000 * 14 * ((2 * 4 + 2) * 0.75 * 1e6 * (8 / (megabits * 1e6)))
      assert.ok(stepMs >= Math.max(210, sentMs) - 1e-6 && exposedMs >= -1e-6)
    }
})

test('planUnits tries units of 1 to 16 neighboring blocks and one of all, never larger than there are blocks', () => {
  const tried = (blocks: number) => [
    ...new Set(plan(blocks - 2, 1000, link(1000, 1e-4)).alternatives.map(({ name }) => name)),
  ]
  assert.deepEqual(tried(3), ['every block', '2 blocks', 'one unit'])
  const fewer = ['every block', '2 blocks', '3 blocks', '4 blocks', '6 blocks', '8 blocks', '12 blocks']
  assert.deepEqual(tried(20), [...fewer, '16 blocks', 'one unit'])
})

test('planUnits gathers parameters one or two units ahead: more would hold more memory than it hides', () => {
  const ahead = plan(3, 1000, link(1000, 1e-4)).alternatives.map(({ prefetch }) => prefetch)
  assert.deepEqual([...new Set(ahead)], [1, 2])
})
