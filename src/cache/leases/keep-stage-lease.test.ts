import assert from 'node:assert/strict'
import { mock, type TestContext, test } from 'node:test'
import { exampleCopy } from '../../testing/example-copies.js'
import type { Cache } from '../cache.js'
import { KeptStageLease, planRenewal } from './keep-stage-lease.js'

/** A kept lease with manual timers, and a record whose answers to renewals the test chooses. */
function keepLease(context: TestContext, { isHeld = true, caller = new AbortController() } = {}) {
  mock.timers.enable({ apis: ['setTimeout'] })
  context.after(() => mock.timers.reset())
  const asked: (() => void)[] = []
  const record = {
    reportProgress: () => new Promise<boolean>((resolve) => asked.push(() => resolve(isHeld))),
  }
  const cache = { nowMs: () => 0, record } as unknown as Cache
  const turn = { copy: exampleCopy('flowers'), stageLeaseId: 'stage' }
  const kept = new KeptStageLease(cache, turn, { signal: caller.signal })
  /** Lets `seconds` pass, after earlier answers have taken effect. */
  const wait = async (seconds: number) => {
    for (let second = 0; second < seconds; second += 1) {
      await new Promise(setImmediate)
      mock.timers.tick(1000)
    }
  }
  return { kept, asked, wait }
}

test('while the record does not answer, one renewal waits and no more pile up behind it', async (context) => {
  const { kept, asked, wait } = keepLease(context)
  await wait(5)
  assert.equal(asked.length, 1)
  asked[0]!()
  await wait(1)
  assert.equal(asked.length, 2, 'renewals go on when it answers')
  const stopped = kept.stop()
  asked[1]!()
  await stopped
  assert.equal(kept.isLost, false)
})

test('stopping while a renewal is under way waits for it, and none follows', async (context) => {
  const { kept, asked, wait } = keepLease(context)
  await wait(1)
  assert.equal(asked.length, 1)
  let isStopped = false
  const stopped = kept.stop().then(() => {
    isStopped = true
  })
  await wait(3)
  assert.equal(isStopped, false, 'the record still writes for this stager')
  asked[0]!()
  await stopped
  await wait(10)
  assert.equal(asked.length, 1)
})

test('stopping between renewals leaves no timer', async (context) => {
  const { kept, asked, wait } = keepLease(context)
  await kept.stop()
  await wait(10)
  assert.equal(asked.length, 0)
})

test('its signal aborts once the record says that the lease is lost', async (context) => {
  const { kept, asked, wait } = keepLease(context, { isHeld: false })
  await wait(1)
  assert.deepEqual([kept.isLost, kept.signal.aborted], [false, false])
  asked[0]!()
  await new Promise(setImmediate)
  assert.deepEqual([kept.isLost, kept.signal.aborted], [true, true])
  await kept.stop()
})

test('its signal aborts with that of the caller, which loses no lease', async (context) => {
  const caller = new AbortController()
  const { kept } = keepLease(context, { caller })
  caller.abort()
  assert.deepEqual([kept.isLost, kept.signal.aborted], [false, true])
  await kept.stop()
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
