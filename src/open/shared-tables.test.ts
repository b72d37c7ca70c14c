import assert from 'node:assert/strict'
import { rmSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { SAMPLES_FOLDER } from '../cache/cache-layout.js'
import { openExampleCache } from '../testing/example-cache.js'
import { exampleCopy } from '../testing/example-copies.js'
import { exampleSurroundings } from '../testing/example-surroundings.js'
import { findHolders, findInRoot, keepInRoot, openSharedTables } from './shared-tables.js'

const TABLE = { bytes: Buffer.from('a list of samples') }

test('a list is found under the stamp that it was kept under, and nowhere else', async (t) => {
  const { cache } = await openExampleCache(t)
  assert.equal(findInRoot(cache.root, 'one'), undefined)
  keepInRoot(cache.root, 'one', TABLE)
  assert.deepEqual(findInRoot(cache.root, 'one'), TABLE.bytes)
  assert.equal(findInRoot(cache.root, 'two'), undefined)
})

test('a list behind a link is not believed, and a root that is not there takes none', async (t) => {
  const { cache } = await openExampleCache(t)
  keepInRoot(cache.root, 'one', TABLE)
  const folder = join(cache.root, SAMPLES_FOLDER)
  symlinkSync('one.samples', join(folder, 'two.samples'))
  assert.equal(findInRoot(cache.root, 'two'), undefined)
  rmSync(cache.root, { recursive: true })
  keepInRoot(join(cache.root, 'gone'), 'one', TABLE)
  assert.equal(findInRoot(join(cache.root, 'gone'), 'one'), undefined)
})

test('only whole copies in the cache share lists, each for its version and folder', async (t) => {
  const { cache, makeDataset, prepare } = await openExampleCache(t)
  const { copy } = await prepare(makeDataset('flowers'))
  const context = exampleSurroundings(cache, t.signal)
  const stripe = { index: 0, nodes: ['node-a', 'node-b'] }
  for (const other of [
    { ...copy, stripe },
    { ...copy, version: null },
    { ...copy, directory: '/elsewhere' },
  ])
    assert.equal(await openSharedTables(context, other, copy.path), undefined)
  const shared = await openSharedTables(context, copy, copy.path)
  assert.equal(await shared?.find('files'), undefined)
  shared?.keep('files', TABLE as never)
  assert.deepEqual(await shared?.find('files'), TABLE.bytes)
  const otherFolder = await openSharedTables(context, copy, join(copy.path, 'train'))
  assert.equal(await otherFolder?.find('files'), undefined)
})

test('agents of other nodes are asked for their whole copies of the same version', async (t) => {
  const { cache } = await openExampleCache(t)
  const { record } = cache
  const nowMs = record.nowMs()
  const disk = { capacityBytes: 1, freeBytes: 1, inodesTotal: 1, inodesFree: 1 }
  for (const node of ['node-a', 'node-b', 'node-c', 'node-d', 'node-e']) {
    const agent = node === 'node-e' ? undefined : { url: `http://${node}`, seenAtMs: nowMs, metrics: {} }
    await record.saveNode({ node, cacheRoot: '/cache', policy: {}, disk, seenAtMs: nowMs, agent } as never)
  }
  const add = (node: string, changes: object = {}) =>
    record.addAdopted(
      exampleCopy('flowers', { copyId: `at-${node}`, node, version: 'v1', ...changes }),
      nowMs,
    )
  await add('node-a')
  await add('node-b')
  await add('node-c', { version: 'v2' })
  await add('node-d', { stripe: { index: 0, nodes: ['node-d', 'node-a'] } })
  await add('node-e')
  const own = exampleCopy('flowers', { copyId: 'at-node-a', node: 'node-a', version: 'v1' })
  assert.deepEqual(await findHolders(cache, own), [{ url: 'http://node-b', copyId: 'at-node-b' }])
  const away = { ...cache, record: { ...record, listNodes: () => Promise.reject(new Error('away')) } }
  assert.deepEqual(await findHolders(away, own), [])
})
