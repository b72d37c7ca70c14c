import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MAX_BLOCKS } from '../../model/step-blocks.js'
import { sumSteps } from './sum-steps.js'

function told(
  waitedMs: readonly number[],
  tookMs: readonly number[],
  waits: Readonly<Record<string, number>>,
) {
  const toUs = (times: readonly number[]) => times.map((ms) => 1000 * ms)
  return { first: 0, waitedUs: toUs(waitedMs), tookUs: toUs(tookMs), waits: new Map(Object.entries(waits)) }
}

test('a step counts as its last rank spent it, and the causes as those of that rank', () => {
  const ranks = [
    [2, told([5, 30], [100, 100], { disk: 35 })],
    [3, told([40, 0], [100, 90], { transform: 30, disk: 10 })],
  ] as const
  assert.deepEqual(sumSteps(ranks, 0, 2), {
    size: 1,
    blocks: [
      [0, 1, 40, 60],
      [1, 1, 30, 70],
    ],
    causes: { 'disk of rank 2': 30, 'transform of rank 3': 30, 'disk of rank 3': 10 },
  })
})

test('many steps lie in few blocks, which begin at multiples of their size', () => {
  const times = Array.from({ length: 1000 }, () => 1)
  const { size, blocks } = sumSteps([[0, told(times, times, {})]], 10, 1000)
  assert.equal(size, 8)
  assert.ok(blocks.length <= MAX_BLOCKS)
  assert.deepEqual(
    [blocks[0], blocks[1]],
    [
      [1, 6, 6, 0],
      [2, 8, 8, 0],
    ],
  )
})
