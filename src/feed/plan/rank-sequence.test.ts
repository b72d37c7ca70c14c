import assert from 'node:assert/strict'
import { test } from 'node:test'
import { countOfStep, type LastBatchRule, planRankSequence, positionOfItem } from './rank-sequence.js'

/** Gathers the positions of global batch `step` from all ranks, in rank order. */
function gather(sampleCount: number, globalBatch: number, world: number, last: LastBatchRule, replicate = 1) {
  const batchSize = (globalBatch * replicate) / world
  const ranks = Array.from({ length: world }, (_, rank) =>
    planRankSequence({ sampleCount, batchSize, world, rank, replicate, last }),
  )
  const steps: number[][] = []
  for (let step = 0; step < ranks[0]!.stepsPerEpoch; step++)
    steps.push(
      ranks.flatMap((sequence) =>
        Array.from({ length: countOfStep(sequence, step) }, (_, i) =>
          positionOfItem(sequence, step * batchSize + i),
        ),
      ),
    )
  return steps
}

for (const last of ['drop', 'pad', 'uneven'] as const) {
  test(`global batches are the same for 1, 2, 4 and 8 ranks with last '${last}'`, () => {
    const one = gather(1003, 32, 1, last)
    for (const world of [2, 4, 8]) assert.deepEqual(gather(1003, 32, world, last), one)
  })
}

for (const { last, positions, flagged } of [
  { last: 'drop', positions: 992, flagged: 0 },
  { last: 'pad', positions: 1024, flagged: 21 },
  { last: 'uneven', positions: 1003, flagged: 0 },
] as const) {
  test(`last '${last}' delivers each position once: ${positions} of 1003 in batches of 32`, () => {
    const steps = gather(1003, 32, 4, last)
    assert.ok(steps.every(({ length }) => length > 0))
    const all = steps.flat()
    assert.deepEqual(
      all,
      Array.from({ length: positions }, (_, i) => i),
    )
    assert.equal(all.filter((position) => position >= 1003).length, flagged)
  })
}

test('replicated ranks get the same slice', () => {
  const of = (rank: number) =>
    planRankSequence({ sampleCount: 100, batchSize: 8, world: 4, rank, replicate: 2, last: 'drop' })
  assert.equal(of(0).globalBatch, 16)
  assert.equal(positionOfItem(of(0), 9), positionOfItem(of(1), 9))
  assert.equal(positionOfItem(of(2), 0), 8)
})

for (const { name, change } of [
  { name: 'a rank outside the job', change: { rank: 4 } },
  { name: 'a replicate that does not divide the job', change: { replicate: 3 } },
  { name: 'a batch of nothing', change: { batchSize: 0 } },
  { name: "a dataset smaller than one global batch with last 'drop'", change: { sampleCount: 31 } },
]) {
  test(`planRankSequence refuses ${name}`, () => {
    const good = { sampleCount: 100, batchSize: 8, world: 4, rank: 0, replicate: 1, last: 'drop' as const }
    assert.throws(() => planRankSequence({ ...good, ...change }), { code: 'USAGE' })
  })
}
