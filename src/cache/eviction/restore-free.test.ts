import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openExampleCache } from '../../testing/example-cache.js'
import { restoreFree } from './restore-free.js'

const GIB = 1024 ** 3

/** A cache with the idle copies `old` and `new` and the leased copy `used`, the oldest, on a disk that others fill. */
async function openFilled(context: Parameters<typeof openExampleCache>[0], minFreeBytes: number | undefined) {
  let nowMs = Date.now()
  let freeBytes = 100 * GIB
  const { cache, makeDataset, prepare } = await openExampleCache(context, {
    nowMs: () => nowMs,
    policy: { minFreeBytes },
    measureDisk: async () => ({ capacityBytes: 200 * GIB, freeBytes, inodesTotal: 0, inodesFree: 0 }),
  })
  for (const name of ['used', 'old', 'new']) {
    nowMs += 1000
    const { leaseId } = await prepare(makeDataset(name))
    if (name !== 'used') await cache.record.releaseUses({ leaseId }, nowMs)
  }
  const copies = await cache.record.listCopies({}, nowMs)
  return {
    cache,
    oneCopyBytes: Math.min(...copies.map(({ chargedBytes }) => chargedBytes)),
    leave: (bytes: number) => {
      freeBytes = bytes
    },
    left: async () => (await cache.record.listCopies({}, nowMs)).map(({ dataset }) => dataset).sort(),
  }
}

test('idle copies go, the oldest first, while others fill the disk beyond minFree', async (context) => {
  const { cache, leave, left, oneCopyBytes } = await openFilled(context, 10 * GIB)
  leave(10 * GIB)
  assert.deepEqual(await restoreFree(cache), [])
  leave(10 * GIB - oneCopyBytes)
  const [victim, ...more] = await restoreFree(cache)
  assert.deepEqual(more, [], 'no more than is needed')
  assert.match(victim!.reason, /^others filled the disk beyond minFree: least recently used/)
  assert.deepEqual(await left(), ['new', 'used'])
  leave(0)
  await restoreFree(cache)
  assert.deepEqual(await left(), ['used'], 'a copy in use stays, though the disk is still too full')
})

test('without minFree a full disk evicts nothing', async (context) => {
  const { cache, leave, left } = await openFilled(context, undefined)
  leave(0)
  assert.deepEqual(await restoreFree(cache), [])
  assert.deepEqual(await left(), ['new', 'old', 'used'])
})
