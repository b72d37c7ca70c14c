import assert from 'node:assert/strict'
import { test } from 'node:test'
import { sumPersistentBytes } from '../../testing/persistent-bytes.js'
import { gpt } from '../../testing/synthetic-networks.js'
import { buildProfile, SYNTHETIC_DEVICE } from '../../testing/synthetic-profile.js'
import { findBlocks } from '../step/find-blocks.js'
import { chooseWays } from './choose-ways.js'
import { guessCount, weighBlocks } from './weigh-blocks.js'

const BLOCK = { forwardUs: 10, madeBytes: 120, heldBytes: 100 }
const surplus = { bytes: 400, leavingBytes: 100, bytesPerUs: 5 }

for (const { name, order, asked, count } of [
  { name: 'none where everything fits', order: [BLOCK, BLOCK], asked: { ...surplus, bytes: -1 }, count: 0 },
  {
    name: 'none where all can leave in time',
    order: [BLOCK],
    asked: { ...surplus, leavingBytes: 400 },
    count: 0,
  },
  { name: 'as many as free the rest', order: Array(9).fill(BLOCK), asked: surplus, count: 3 },
  { name: 'none where waiting costs less', order: [BLOCK], asked: { ...surplus, bytesPerUs: 50 }, count: 0 },
  { name: 'all where not even they are enough', order: [BLOCK, BLOCK], asked: surplus, count: 2 },
]) {
  test(`guessCount recomputes ${name}`, () => {
    assert.equal(guessCount(order, asked), count)
  })
}

test('of many blocks the guess is near the count that the search chooses', () => {
  const nodes = gpt({ batch: 8, context: 512, width: 512, vocabulary: 8000, blocks: 96 })
  const profile = buildProfile('GPT', nodes, { ...SYNTHETIC_DEVICE, copyRatio: 8 })
  const blocks = findBlocks(profile)
  const fixed = sumPersistentBytes(profile)
  const { keepAll } = chooseWays(profile, { budgetBytes: 2 ** 50 })
  const budgetBytes = Math.floor(fixed + 0.5 * (keepAll.peakBytes - fixed))
  const { weights, surplus: found } = weighBlocks(profile, blocks, budgetBytes)
  assert.equal(found.bytes, keepAll.peakBytes - budgetBytes)
  const { best } = chooseWays(profile, { budgetBytes })
  const guess = guessCount(weights.toReversed(), found)
  assert.ok(
    guess > 10 && Math.abs(guess - best!.recomputed.length) <= 9,
    `${guess}, ${best!.recomputed.length}`,
  )
})
