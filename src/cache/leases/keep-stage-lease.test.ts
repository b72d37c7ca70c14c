import assert from 'node:assert/strict'
import { mock, test } from 'node:test'
import { exampleCopy } from '../../testing/example-copies.js'
import type { Cache } from '../cache.js'
import { KeptStageLease, planRenewal } from './keep-stage-lease.js'

test('while the record does not answer, one renewal waits and no more pile up behind it', async (context) => {
  mock.timers.enable({ apis: ['setTimeout'] })
  context.after(() => mock.timers.reset())
  const asked: (() => void)[] = []
  const record = {
    reportProgress: () => new Promise<boolean>((resolve) => asked.push(() => resolve(true))),
  }
  const cache = { nowMs: () => 0, record } as unknown as Cache
  const turn = { copy: exampleCopy('flowers'), stageLeaseId: 'stage' }
  const kept = new KeptStageLease(cache, turn, { signal: new AbortController().signal })
  for (let second = 0; second < 5; second += 1) mock.timers.tick(1000)
  await new Promise(setImmediate)
  assert.equal(asked.length, 1)
  asked[0]!()
  await new Promise(setImmediate)
  mock.timers.tick(1000)
  await new Promise(setImmediate)
  assert.equal(asked.length, 2, 'renewals go on when it answers')
  const stopped = kept.stop()
  asked[1]!()
  await stopped
  assert.equal(kept.isLost, false)
})

for (const { stagers, afterMs } of [
  { stagers: 1, afterMs: 1000 },
  { stagers: 100, afterMs: 1000 },
  { stagers: 250, afterMs: 2500 },
  { stagers: 4096, afterMs: 5000 },
]) {
  test(`of ${stagers} that stage together, each renews its lease every ${afterMs} ms`, () => {
    assert.equal(planRenewal(stagers), afterMs)
  })
}
