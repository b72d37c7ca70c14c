import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { joinExchange } from './join-exchange.js'
import { makeGradients, planOf, runStep, withSessions } from './local-sessions.test.fixture.js'
import { FIRST_SCALE } from './plan/scale.js'
import { openRendezvous } from './rendezvous/open-rendezvous.js'

/** The outcome of a promise within half a minute. */
async function outcomeOf(promise: Promise<unknown>): Promise<unknown> {
  const settled = promise.then(
    () => 'resolved',
    (error: unknown) => error,
  )
  return await Promise.race([settled, sleep(30_000, 'waits', { ref: false })])
}

const PLAN = planOf(2, 'fp32', [[100], [3]])
const CLOSED = { code: 'USAGE', message: 'this session of the exchange is closed' }

for (const ranks of [1, 2])
  test(`${ranks} ranks: a session that was closed begins no step`, async () => {
    await withSessions(planOf(ranks, 'fp32', [[100]]), 'ring', async (sessions) => {
      await runStep(sessions, makeGradients(planOf(ranks, 'fp32', [[100]]), 1, 1))
      await sessions[0]!.close()
      assert.throws(() => sessions[0]!.beginStep(), CLOSED)
    })
  })

test('who waits in a session that is closed meanwhile hears of it, and gradients stay as they were', async () => {
  await withSessions(PLAN, 'ring', async ([session]) => {
    const step = session!.beginStep()
    const gradients = [new Float32Array(100).fill(1), new Float32Array(3).fill(1)]
    for (const [at, gradient] of gradients.entries()) await step.add(`${at}.0`, gradient)
    const committing = outcomeOf(step.commit())
    await session!.close()
    assert.equal(((await committing) as Error).message, CLOSED.message)
    assert.ok(gradients.every((gradient) => gradient.every((value) => value === 1)))
  })
})

test('a step of which something was sent must be committed before another one, and only once', async () => {
  await withSessions(PLAN, 'ring', async (sessions) => {
    const gradients = makeGradients(PLAN, 1, 1)
    const steps = sessions.map((session) => session.beginStep())
    // Nothing of the first step was sent yet: it can be given up.
    steps[0] = sessions[0]!.beginStep()
    for (const [rank, step] of steps.entries()) await step.add('0.0', gradients[rank]!.get('0.0')!)
    assert.throws(() => sessions[0]!.beginStep(), {
      code: 'EXCHANGE_MISMATCH',
      message: /step 0 is under way/,
    })
    for (const [rank, step] of steps.entries()) await step.add('1.0', gradients[rank]!.get('1.0')!)
    await Promise.all(steps.map((step) => step.commit()))
    const again = await outcomeOf(steps[0]!.commit())
    assert.equal((again as Error).message, 'step 0 was committed already')
    await runStep(sessions, gradients)
  })
})

test('scales of other buckets are refused in words', async () => {
  const rendezvous = await openRendezvous({ host: '127.0.0.1', port: 0, nowMs: Date.now })
  const joining = joinExchange({ rendezvous, plan: planOf(1, 'fp16', [[5], [6]]), scales: [FIRST_SCALE] })
  await assert.rejects(joining, {
    code: 'EXCHANGE_MISMATCH',
    message: 'the scales are of 1 bucket, the plan has 2',
  })
  await rendezvous.close()
})

for (const { wrong, words } of [
  { wrong: { rank: Number.NaN }, words: /rank: .*NaN/ },
  { wrong: { rank: -1 }, words: /rank: / },
  { wrong: { committedSteps: 0.5 }, words: /committedSteps: / },
  { wrong: { hostKey: 'x'.repeat(201) }, words: /hostKey: / },
])
  test(`${JSON.stringify(wrong).slice(0, 30)} is refused by its name, not called the end of the rendezvous`, async () => {
    const rendezvous = await openRendezvous({ host: '127.0.0.1', port: 0, nowMs: Date.now })
    const plan = { ...planOf(1, 'fp32', [[5]]), levels: 2 as const }
    await assert.rejects(joinExchange({ rendezvous, plan, ...wrong }), { code: 'USAGE', message: words })
    await rendezvous.close()
  })
