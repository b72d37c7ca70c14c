import assert from 'node:assert/strict'
import { test } from 'node:test'
import { TOY_SGD, TOY_SLOTS, TOY_VALUES } from '../../testing/toy-model.js'
import { CentralNode } from './central-node.js'
import type { CentralOptions } from './central-options.js'

const OPTIONS: CentralOptions = {
  mode: { kind: 'ssp', bound: 1 },
  workers: 2,
  optimizer: TOY_SGD,
  isMean: true,
  lost: { kind: 'abort' },
  lostAfterMs: 60_000,
  checkpointEvery: 1,
}

test('a rank that joins after a restart of ssp mode goes on with the slowest, and holds nobody up', async (t) => {
  const before = new CentralNode(OPTIONS)
  await before.begin(TOY_SLOTS, TOY_VALUES)
  const push = (node: CentralNode, rank: number, step: number) =>
    node.push({ rank, epoch: node.epoch, step, baseVersion: node.version }, TOY_VALUES.slice())
  for (let step = 0; step < 5; step++)
    for (const rank of [0, 1]) assert.equal((await push(before, rank, step)).kind, 'applied')
  const { epoch, version, lastSteps, optimizer } = before
  const saved = { ...before.state!, slots: TOY_SLOTS, epoch, version, lastSteps, optimizer }
  const after = new CentralNode({ ...OPTIONS, workers: 3 }, { ...saved, startedWith: optimizer })
  t.after(() => after.close())
  assert.equal((await push(after, 0, 5)).kind, 'applied')
  assert.equal((await push(after, 2, 4)).kind, 'duplicate')
  assert.equal((await push(after, 2, 5)).kind, 'applied')
})
