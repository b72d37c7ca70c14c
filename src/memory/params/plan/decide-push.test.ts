import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type CentralState, decidePush, findHolding, mayBegin } from './decide-push.js'

const STATE: CentralState = {
  mode: { kind: 'sync' },
  workers: 2,
  epoch: 1,
  version: 10,
  lastSteps: [9, 9],
  arrived: new Set([1]),
  lost: new Set<number>(),
}
const PUSH = { rank: 0, epoch: 1, step: 10, baseVersion: 10 }
const ssp = { mode: { kind: 'ssp', bound: 2 } } as const
const free = { mode: { kind: 'async' } } as const

for (const { name, state, push, kind } of [
  { name: 'collects a sync push of the present version', kind: 'collect' },
  { name: 'refuses a rank the job does not have', push: { rank: 2 }, kind: 'rank' },
  { name: 'refuses a push for an earlier life of the server', push: { epoch: 0 }, kind: 'epoch' },
  { name: 'knows a step that was applied', push: { step: 9 }, kind: 'duplicate' },
  { name: 'knows a step that was collected', push: { rank: 1 }, kind: 'duplicate' },
  { name: 'refuses an old base in sync mode', push: { baseVersion: 9 }, kind: 'stale' },
  { name: 'applies an old base within the bound', state: ssp, push: { baseVersion: 6 }, kind: 'apply' },
  { name: 'refuses a base beyond the bound', state: ssp, push: { baseVersion: 5 }, kind: 'stale' },
  { name: 'applies a step as far ahead as the bound', state: ssp, push: { step: 12 }, kind: 'apply' },
  { name: 'refuses a step beyond the bound', state: ssp, push: { step: 13 }, kind: 'ahead' },
  { name: 'applies any age in async mode', state: free, push: { baseVersion: 0, step: 99 }, kind: 'apply' },
  { name: 'refuses a step far ahead in async mode', state: free, push: { step: 1011 }, kind: 'skipped' },
  { name: 'refuses a step far ahead in sync mode', push: { step: 1011 }, kind: 'skipped' },
  { name: 'applies a step of a rank that left some out', state: free, push: { step: 1010 }, kind: 'apply' },
  {
    name: 'counts no rank that was given up',
    state: { ...ssp, lastSteps: [9, 0], lost: new Set([1]) },
    kind: 'apply',
  },
  { name: 'refuses a base nobody has yet', state: free, push: { baseVersion: 11 }, kind: 'stale' },
]) {
  test(`decidePush ${name}`, () => {
    const decision = decidePush({ ...STATE, ...state }, { ...PUSH, ...push })
    assert.equal(decision.kind === 'refuse' ? decision.reason : decision.kind, kind)
  })
}

test('mayBegin holds a fast rank back in ssp mode only', () => {
  const lastSteps = [9, 6]
  const lost = new Set<number>()
  assert.equal(mayBegin({ mode: ssp.mode, lastSteps, lost }, 9), true)
  assert.equal(mayBegin({ mode: ssp.mode, lastSteps, lost }, 10), false)
  assert.equal(mayBegin({ mode: ssp.mode, lastSteps, lost: new Set([1]) }, 10), true)
  assert.equal(mayBegin({ mode: free.mode, lastSteps, lost }, 99), true)
  assert.deepEqual(findHolding({ mode: ssp.mode, lastSteps, lost }, 10), [1])
})
