import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import type { Copy } from '../model/copy.js'
import { exampleCopy } from '../testing/example-copies.js'
import { temporaryDirectory } from '../testing/temporary-directory.js'
import { CopyArrivals } from './copy-arrivals.js'

const KEYS = ['a', 'b']

/** The arrivals of a copy whose first file is here, and whose stager is gone. */
async function arrive(t: TestContext) {
  const copy = exampleCopy('flowers', { version: 'v1', directory: await temporaryDirectory(t) })
  const { promise: prepared, resolve, reject } = Promise.withResolvers<Copy>()
  const here = Uint8Array.of(1, 0)
  const arrivals = new CopyArrivals({
    copy,
    keyOf: (file) => KEYS[file]!,
    here,
    prepared,
    noteRead: () => {},
  })
  t.after(() => arrivals.close())
  return { arrivals, copy, finish: resolve, fail: reject }
}

test('a file that was here is here, and any other once the copy is ready', async (t) => {
  const { arrivals, copy, finish } = await arrive(t)
  assert.deepEqual([arrivals.isHere(0), arrivals.isHere(1), arrivals.isComplete], [true, false, false])
  assert.equal(arrivals.name, 'the copy of flowers here')
  const wait = arrivals.waitFor(1)
  const range = arrivals.waitFor({ file: 1, offset: 0, length: 1 })
  finish(copy)
  assert.deepEqual([await wait, await range], [true, true])
  assert.deepEqual([arrivals.isHere(1), arrivals.isComplete], [true, true])
  assert.equal(await arrivals.waitFor(1), true, 'also later')
})

for (const { what, end, reason } of [
  {
    what: 'whose download failed',
    end: ({ fail }: Awaited<ReturnType<typeof arrive>>) => fail(new Error('the store is away')),
    reason: 'flowers: the store is away',
  },
  {
    what: 'of which another version came',
    end: ({ finish, copy }: Awaited<ReturnType<typeof arrive>>) => finish({ ...copy, version: 'v2' }),
    reason: 'flowers: its source has changed meanwhile',
  },
])
  test(`of a copy ${what} no more files come, and its name says why`, async (t) => {
    const coming = await arrive(t)
    const { arrivals } = coming
    const waits = [0, 1, { file: 0, offset: 0, length: 1 }].map((wanted) => arrivals.waitFor(wanted))
    end(coming)
    assert.deepEqual(await Promise.all(waits), [true, false, true])
    assert.equal(arrivals.isComplete, false)
    assert.equal(arrivals.name, reason)
    assert.equal(await arrivals.waitFor(1), false)
  })

test('closing ends a wait, and so does its own signal', async (t) => {
  const { arrivals } = await arrive(t)
  const stop = new AbortController()
  const stopped = arrivals.waitFor(1, stop.signal)
  stop.abort()
  assert.equal(await stopped, false)
  const closed = arrivals.waitFor(1)
  arrivals.close()
  assert.equal(await closed, false)
})
