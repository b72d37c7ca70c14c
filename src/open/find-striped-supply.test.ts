import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { openExampleCache } from '../testing/example-cache.js'
import { exampleCopy } from '../testing/example-copies.js'
import { exampleSurroundings } from '../testing/example-surroundings.js'
import { temporaryDirectory } from '../testing/temporary-directory.js'
import { findStripedSupply } from './find-striped-supply.js'

const NODES = ['node-b', 'node-c']
const POSTGRES = { kind: 'postgres', url: 'postgres://nowhere/' } as const

/** A record in which two other nodes have the stripes of `flowers`; at their agents' port nobody listens. */
async function striped(t: TestContext, { changes = {}, record = POSTGRES as object } = {}) {
  const { cache, makeDataset } = await openExampleCache(t)
  const dataset = makeDataset('flowers')
  const nowMs = cache.record.nowMs()
  const disk = { capacityBytes: 1, freeBytes: 1, inodesTotal: 1, inodesFree: 1 }
  for (const [index, node] of NODES.entries()) {
    const agent = { url: 'http://127.0.0.1:1', seenAtMs: nowMs, metrics: {} }
    await cache.record.saveNode({
      node,
      cacheRoot: '/cache',
      policy: {},
      disk,
      seenAtMs: nowMs,
      agent,
    } as never)
    const stripe = { index, nodes: NODES }
    const copy = { copyId: `at-${node}`, node, source: dataset, version: 'v1', stripe, ...changes }
    await cache.record.addAdopted(exampleCopy('flowers', copy), nowMs)
  }
  const context = exampleSurroundings(cache, t.signal, { datasets: [dataset], record: record as never })
  const cacheFolder = await temporaryDirectory(t)
  const find = (target = 'flowers') =>
    findStripedSupply(context, { target, split: undefined, only: undefined, format: undefined, cacheFolder })
  return { cache, dataset, find, cacheFolder }
}

test('the stripes are leased, and given back where no agent serves them', async (t) => {
  const { cache, find } = await striped(t)
  const asked: string[] = []
  const { leaseCopy } = cache.record
  t.mock.method(cache.record, 'leaseCopy', (request: Parameters<typeof leaseCopy>[0], nowMs: number) => {
    asked.push(request.copyId)
    return leaseCopy.call(cache.record, request, nowMs)
  })
  await assert.rejects(find(), /flowers/)
  assert.deepEqual(asked, ['at-node-b', 'at-node-c'])
  assert.deepEqual(await cache.record.listLeases({}), [])
})

test('a whole copy on this node is preferred to stripes on others', async (t) => {
  const { cache, dataset, find } = await striped(t)
  const copy = exampleCopy('flowers', { copyId: 'whole', node: cache.node, source: dataset })
  await cache.record.addAdopted(copy, cache.record.nowMs())
  assert.equal(await find(), undefined)
})

for (const { what, options } of [
  { what: 'copies that are no stripes', options: { changes: { stripe: undefined } } },
  {
    what: 'stripes of another definition',
    options: { changes: { source: { ...exampleCopy('flowers').source!, include: ['*.jpg'] } } },
  },
  {
    what: 'a record that only this node has',
    options: { record: { kind: 'sqlite', url: 'sqlite:///nowhere', path: '/nowhere' } },
  },
])
  test(`a feed does not read ${what} from other nodes`, async (t) =>
    assert.equal(await (await striped(t, options)).find(), undefined))

test('a path is no striped dataset', async (t) => {
  const { find, cacheFolder } = await striped(t)
  for (const path of ['./flowers', '/flowers', cacheFolder]) assert.equal(await find(path), undefined)
})
