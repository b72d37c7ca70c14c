import assert from 'node:assert/strict'
import { test } from 'node:test'
import { planArenaRuns } from './arena-runs.js'

for (const { name, offsets, lengths, runs } of [
  {
    name: 'takes neighbours together, with the gap that alignment leaves',
    offsets: [0, 128],
    lengths: [65, 10],
    runs: [[0, 2, 0, 138]],
  },
  {
    name: 'does not write over what lies between two samples',
    offsets: [0, 128],
    lengths: [64, 10],
    runs: [
      [0, 1, 0, 64],
      [1, 1, 128, 10],
    ],
  },
  {
    name: 'begins anew where the arena goes back',
    offsets: [128, 0],
    lengths: [64, 64],
    runs: [
      [0, 1, 128, 64],
      [1, 1, 0, 64],
    ],
  },
  {
    name: 'ends a run at the limit',
    offsets: [0, 64, 128],
    lengths: [64, 64, 64],
    runs: [
      [0, 2, 0, 128],
      [2, 1, 128, 64],
    ],
  },
  {
    name: 'gives a sample above the limit a run of its own',
    offsets: [0, 192],
    lengths: [192, 64],
    runs: [
      [0, 1, 0, 192],
      [1, 1, 192, 64],
    ],
  },
]) {
  test(`planArenaRuns ${name}`, () => {
    const found = planArenaRuns(offsets, (i) => lengths[i]!, 138)
    assert.deepEqual(
      found.map((run) => [run.first, run.count, run.start, run.length]),
      runs,
    )
  })
}
