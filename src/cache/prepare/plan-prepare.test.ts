import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openExampleCache } from '../../testing/example-cache.js'
import { planPrepare } from './plan-prepare.js'

test('a copy that is ready is planned as such, a stripe of the same version is not', async (t) => {
  const { cache, makeDataset, prepare } = await openExampleCache(t)
  const { record } = cache
  const flowers = makeDataset('flowers')
  const { copy } = await prepare(flowers)
  const plan = async () => {
    const { outcome, version } = await planPrepare(cache, flowers, { isRefresh: false, signal: t.signal })
    return { outcome, version }
  }
  assert.deepEqual(await plan(), { outcome: 'ready', version: copy.version })
  const copies = await record.listCopies({}, cache.nowMs())
  const stripe = { index: 0, nodes: [cache.node, 'node-b'] }
  t.mock.method(record, 'listCopies', async () => copies.map((whole) => ({ ...whole, stripe })))
  assert.deepEqual(await plan(), { outcome: 'fits', version: copy.version })
})
