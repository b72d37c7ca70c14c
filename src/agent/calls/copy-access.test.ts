import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { openPasses } from './copy-access.js'

/** Passes of 100 ms, numbered by the asking that gave them. */
async function open() {
  const clock = { nowMs: 0, asked: 0, failure: undefined as Error | undefined }
  const ask = async (copyIds: readonly string[]) => {
    clock.asked += 1
    if (clock.failure) throw clock.failure
    return { passes: copyIds.map((copyId) => `${copyId}:${clock.asked}`), lastsMs: 100, ca: 'theirs' }
  }
  return { clock, access: await openPasses(['a', 'b'], ask, () => clock.nowMs) }
}

test('passes are used for half of their time, then new ones are asked for, and nobody waits for them', async () => {
  const { clock, access } = await open()
  assert.equal(access.ca, 'theirs')
  assert.equal(await access.tokenFor('b'), 'b:1')
  clock.nowMs = 50
  assert.equal(await access.tokenFor('a'), 'a:1')
  assert.equal(clock.asked, 1)
  clock.nowMs = 60
  assert.equal(await access.tokenFor('a'), 'a:1')
  await turn()
  assert.deepEqual(await Promise.all([access.tokenFor('a'), access.tokenFor('b')]), ['a:2', 'b:2'])
  assert.equal(clock.asked, 2)
  clock.nowMs = 300
  assert.equal(await access.tokenFor('a'), 'a:3')
})

test('a service that is away takes no pass that is still good', async () => {
  const { clock, access } = await open()
  clock.failure = new Error('away')
  clock.nowMs = 99
  assert.equal(await access.tokenFor('a'), 'a:1')
  clock.nowMs = 101
  await turn()
  await assert.rejects(access.tokenFor('a'), /away/)
  clock.failure = undefined
  assert.match((await access.tokenFor('a'))!, /^a:\d$/)
})
