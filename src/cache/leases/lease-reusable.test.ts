import assert from 'node:assert/strict'
import { chmodSync, existsSync, readFileSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import type { Copy } from '../../model/copy.js'
import type { RecordStore } from '../../records/contract/record-store.js'
import { markDamaged } from '../../sources/damaged-copies.js'
import { openExampleCache } from '../../testing/example-cache.js'
import { exampleCopy } from '../../testing/example-copies.js'
import { stagingDirectory } from '../cache-layout.js'
import { evictCopies } from '../eviction/evict-copies.js'
import { leaseNewest } from './lease-reusable.js'

test('the previous copy cannot be evicted until its files are linked, and can be afterwards', async (context) => {
  const example = await openExampleCache(context)
  const { record: real, root } = example.cache
  const dataset = example.makeDataset('d', { a: 'a', b: 'b' })
  const seen: { readonly linked: number; readonly evicted: number }[] = []
  const evict = async () => (await evictCopies(cache, { kind: 'datasets', names: ['d'] })).victims.length
  const countLinked = async () => {
    const [staged] = await real.listCopies({ states: ['staging'] }, Date.now())
    const files = staged ? join(stagingDirectory(root), staged.copyId, 'files') : ''
    return ['a', 'b'].filter((name) => existsSync(join(files, name))).length
  }
  const look = async () => seen.push({ linked: await countLinked(), evicted: await evict() })
  const isAdmitted = async () => (await real.listCopies({ states: ['staging'] }, Date.now())).length > 0
  /**
   * The real record, with an operator who evicts the dataset as soon as its copy is leased for its files, before its
   * release, and afterwards. (While the source is listed, the copy is also leased, and released before room is made.)
   */
  const record: RecordStore = {
    ...real,
    async leaseCopy(...request) {
      const leaseId = await real.leaseCopy(...request)
      if (await isAdmitted()) await look()
      return leaseId
    },
    async releaseUses(...request) {
      if (!(await isAdmitted())) return real.releaseUses(...request)
      await look()
      const released = await real.releaseUses(...request)
      await look()
      return released
    },
  }
  const cache = { ...example.cache, record }
  const first = await example.prepare(dataset, { cache })
  await real.releaseUses({ leaseId: first.leaseId }, Date.now())
  example.makeDataset('d', { c: 'c' })
  const second = await example.prepare(dataset, { cache, isRefresh: true })
  assert.equal(second.downloaded?.reusedFiles, 2)
  assert.deepEqual(seen, [
    { linked: 0, evicted: 0 },
    { linked: 2, evicted: 0 },
    { linked: 2, evicted: 1 },
  ])
  const left = await real.listLeases({ copyId: second.copy.copyId })
  assert.deepEqual(
    left.map(({ purpose }) => purpose),
    ['use'],
  )
})

test('the previous copy makes room for a refresh if both do not fit', async (context) => {
  const { cache, makeDataset, prepare } = await openExampleCache(context, { policy: { maxDatasets: 1 } })
  const { record } = cache
  const dataset = makeDataset('d')
  const first = await prepare(dataset)
  await record.releaseUses({ leaseId: first.leaseId }, Date.now())
  makeDataset('d', { b: 'b' })
  const second = await prepare(dataset, { isRefresh: true })
  assert.notEqual(second.copy.version, first.copy.version)
  const ready = await record.listCopies({ states: ['ready'] }, Date.now())
  assert.deepEqual(
    ready.map(({ copyId }) => copyId),
    [second.copy.copyId],
  )
})

test('a whole copy leaves a stripe of the same dataset alone, and a stripe every other stripe', async (context) => {
  const { cache } = await openExampleCache(context)
  const { record, node } = cache
  const copies: Copy[] = []
  for (const [at, index] of [undefined, 0, 1].entries()) {
    const stripe = index === undefined ? undefined : { index, nodes: [node, 'other'] }
    const placed = { copyId: `${at}`, node, directory: `copies/${at}`, readyAtMs: at, stripe }
    copies.push(exampleCopy('d', placed))
    await record.addAdopted(copies[at]!, at) // an adopted copy has no stripe: it is here to be leased
  }
  Object.assign(cache, { record: { ...record, listCopies: async () => copies } })
  const find = async (stripe: Copy['stripe']) => {
    const newest = await leaseNewest(cache, { dataset: 'd', stripe })
    await newest?.release()
    return newest?.directory
  }
  assert.equal(await find(undefined), 'copies/0')
  assert.equal(await find({ index: 0, nodes: [node, 'other'] }), 'copies/1')
  assert.equal(await find({ index: 1, nodes: [node, 'other'] }), 'copies/2')
  assert.equal(await find({ index: 0, nodes: ['a', 'b', 'c'] }), undefined)
})

test('nothing is taken from a copy that was found damaged', async (context) => {
  const { cache, makeDataset, prepare } = await openExampleCache(context)
  const { record } = cache
  const dataset = makeDataset('d', { a: 'a' })
  const { copy } = await prepare(dataset)
  const damaged = join(copy.path, 'a')
  const { atime, mtime } = statSync(damaged)
  chmodSync(damaged, 0o644)
  writeFileSync(damaged, 'x')
  utimesSync(damaged, atime, mtime) // as a failing disk would damage it
  await markDamaged(record, copy, { task: 'dsc verify', reason: 'a differs', detail: {} })
  makeDataset('d', { b: 'b' })
  const next = await prepare(dataset, { isRefresh: true })
  assert.notEqual(next.copy.copyId, copy.copyId)
  assert.equal(readFileSync(join(next.copy.path, 'a'), 'utf8'), 'a')
})

test('bytes that only some may read become no dataset of others, who gave them or not', async (context) => {
  const { cache, makeDataset, prepare } = await openExampleCache(context)
  const files = makeDataset('files', { a: 'a' })
  const { openSource } = cache
  Object.assign(cache, { openSource: () => openSource(files) })
  const countReused = async (name: string, readers?: readonly string[]) =>
    (await prepare({ ...files, name, readers })).downloaded?.reusedFiles
  assert.equal(await countReused('faces', ['user:ada']), 0)
  assert.equal(await countReused('eves', ['user:eve']), 0)
  assert.equal(await countReused('open'), 0)
  assert.equal(await countReused('more-faces', ['user:ada']), 1)
  assert.equal(await countReused('more-open'), 1)
})

test('files are taken from a copy of the same source behind many that cannot be used', async (context) => {
  const { cache, makeDataset, prepare } = await openExampleCache(context)
  const files = makeDataset('files', { a: 'a' })
  const { openSource, record } = cache
  const listCopies: RecordStore['listCopies'] = async (filter, nowMs) => {
    const copies = await record.listCopies(filter, nowMs)
    if (filter.sourceUrl === undefined) return copies
    const elsewhere = copies.map((copy) => ({ ...copy, source: { ...files, endpoint: 'https://elsewhere' } }))
    const others = new Array<typeof elsewhere>(1000).fill(elsewhere).flat()
    return [...others, ...copies].slice(0, filter.limit)
  }
  Object.assign(cache, { openSource: () => openSource(files), record: { ...record, listCopies } })
  await prepare(files)
  assert.equal((await prepare({ ...files, name: 'again' })).downloaded?.reusedFiles, 1)
})
