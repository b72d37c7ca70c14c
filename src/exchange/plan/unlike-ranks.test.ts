import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { ringCallCost } from './cost-model.js'
import { gradientsOfModel, type ModelLayer } from './gradient.js'
import { planExchange } from './plan-exchange.js'
import { simulateBuckets } from './simulate-buckets.js'
import { explainUnlikeRanks, joinProfiles, type Profile } from './unlike-ranks.js'

const { layers } = JSON.parse(
  readFileSync(new URL('../../../fixtures/exchange/resnet-152.json', import.meta.url), 'utf8'),
) as { layers: ModelLayer[] }
const profileOf = (backwardSeconds: number): Profile => ({
  model: 'resnet-152',
  backwardSeconds,
  gradientBytes: 4,
  gradients: gradientsOfModel(layers, backwardSeconds),
})

test('a gradient is ready when the slowest rank has it, and the order follows', () => {
  const gradients = (times: Record<string, number>) =>
    Object.entries(times).map(([name, readySeconds], layer) => ({ name, layer, elements: 8, readySeconds }))
  const kind = (backwardSeconds: number, times: Record<string, number>): Profile => ({
    model: 'm',
    backwardSeconds,
    gradientBytes: 4,
    gradients: gradients(times),
  })
  const joined = joinProfiles([kind(3, { c: 1, b: 2, a: 3 }), kind(5, { b: 1, c: 4, a: 5 })])
  assert.ok(!('mismatch' in joined))
  assert.deepEqual(
    joined.gradients.map(({ name, readySeconds }) => [name, readySeconds]),
    [
      ['b', 2],
      ['c', 4],
      ['a', 5],
    ],
  )
  assert.equal(joined.backwardSeconds, 5)
  assert.deepEqual(joined.kindSeconds, [3, 5])
})

test('profiles of two models are told apart by name', () => {
  const one = profileOf(0.1)
  const [first, ...rest] = one.gradients
  assert.match(
    (joinProfiles([one, { ...one, gradients: rest }]) as { mismatch: string }).mismatch,
    new RegExp(`^${first!.name} is missing`),
  )
  assert.match(
    (joinProfiles([{ ...one, gradients: rest }, one]) as { mismatch: string }).mismatch,
    new RegExp(`^${first!.name} is missing`),
  )
  const other = { ...one, gradients: [{ ...first!, elements: 1 }, ...rest] }
  assert.match(
    (joinProfiles([one, other]) as { mismatch: string }).mismatch,
    /values in one and 1 in another/,
  )
})

test('planned with the slow ranks, a step ends earlier than planned with the fast ones alone, or within 2 % of it', () => {
  let earlier = 0
  for (const gigabits of [1, 5, 10, 25]) {
    for (const slowdown of [1.5, 2, 4]) {
      const [fast, slow] = [profileOf(0.1), profileOf(0.1 * slowdown)]
      const joined = joinProfiles([fast, slow])
      assert.ok(!('mismatch' in joined))
      const link = { alphaSeconds: 500e-6, bandwidthBytesPerSecond: (gigabits * 1e9) / 8 }
      const finish = (profile: Profile) => {
        const { buckets } = planExchange({ ...profile, ranks: 8, link, wireBytes: 2 })
        const wire = { bytesPerElement: 2, cost: ringCallCost(link, 8) }
        return simulateBuckets(joined.gradients, buckets, wire).finishSeconds
      }
      const ratio = finish(joined) / finish(fast)
      assert.ok(ratio <= 1.02, `${gigabits} Gb/s, ${slowdown} times slower: ${ratio}`)
      if (ratio < 0.98) earlier++
    }
  }
  assert.ok(earlier >= 3, `clearly earlier in ${earlier} of 12 cases`)
})

test('unlike ranks are told what they cost; like ones are not', () => {
  assert.equal(explainUnlikeRanks([0.2, 0.202]), undefined)
  assert.equal(
    explainUnlikeRanks([0.1, 0.3]),
    'Backward takes 100 ms, 300 ms: the buckets are planned for the slowest, and the fastest waits 200 ms in every step whatever is exchanged. Batches of 1.50, 0.50 times the present one would end it.',
  )
})
