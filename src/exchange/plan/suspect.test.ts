import assert from 'node:assert/strict'
import { test } from 'node:test'
import { findSuspect, type RankHealth } from './suspect.js'

const PATIENCE = { suspectAfterMs: 5000, lostAfterMs: 30_000 }
const busy = (rank: number, silentMs = 100): RankHealth => ({ rank, silentMs, waiting: undefined })
const waits = (rank: number, forRank: number, sinceMs: number): RankHealth => ({
  rank,
  silentMs: 100,
  waiting: { forRank, sinceMs },
})

for (const { name, ranks, expected, patience = PATIENCE } of [
  {
    name: 'nobody while all is well',
    ranks: [busy(0), waits(1, 0, 4999), waits(2, 1, 100)],
    expected: undefined,
  },
  {
    name: 'a rank without heartbeat',
    ranks: [waits(0, 1, 9000), busy(1), busy(2, 5000)],
    expected: [2, 'suspect'],
  },
  { name: 'a silent rank as lost at the limit', ranks: [busy(0), busy(1, 30_000)], expected: [1, 'lost'] },
  {
    name: 'the rank at the end of the chain of waiting, not a neighbour that waits itself',
    ranks: [waits(0, 3, 6000), waits(1, 0, 7000), busy(2), waits(3, 2, 5500)],
    expected: [2, 'suspect'],
  },
  {
    name: 'the rank that is waited for longest when all wait in a circle',
    ranks: [waits(0, 2, 6000), waits(1, 0, 7000), waits(2, 1, 6500)],
    expected: [0, 'suspect'],
  },
  {
    name: 'a rank that stands still as lost at the limit',
    ranks: [waits(0, 1, 31_000), busy(1)],
    expected: [1, 'lost'],
  },
  {
    name: 'a rank as lost, where that is to be before it is suspect',
    patience: { suspectAfterMs: 5000, lostAfterMs: 2000 },
    ranks: [busy(0), busy(1, 2500)],
    expected: [1, 'lost'],
  },
]) {
  test(`findSuspect names ${name}`, () => {
    const found = findSuspect(ranks, patience)
    assert.deepEqual(found && [found.rank, found.kind], expected)
  })
}
