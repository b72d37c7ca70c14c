import assert from 'node:assert/strict'
import { chmodSync, existsSync, mkdirSync, readFileSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { pathToFileURL } from 'node:url'
import type { Dataset } from '../../model/dataset.js'
import type { RecordStore } from '../../records/record-store.js'
import { openSqliteRecord } from '../../records/sqlite/record-store.js'
import { temporaryDirectory } from '../../testing/temporary-directory.js'
import type { Cache } from '../cache.js'
import { stagingDirectory } from '../cache-layout.js'
import { evictCopies } from '../eviction/evict-copies.js'
import { prepareDataset } from '../prepare/prepare-dataset.js'
import { markDamaged } from '../sources/damaged-copies.js'
import { openFileSource } from '../sources/file/file-source.js'

const signal = new AbortController().signal

function makeCache(given: Pick<Cache, 'record' | 'root' | 'policy'>): Cache {
  return {
    ...given,
    node: 'node-a',
    identity: { cacheId: 'c', machine: { id: 'm', host: 'h', isLasting: true } },
    nowMs: Date.now,
    transfer: {},
    openSource: async (wanted) => openFileSource(wanted),
    measureDisk: async () => ({ capacityBytes: 1e12, freeBytes: 1e12, inodesTotal: 1e9, inodesFree: 1e9 }),
    listSlurmJobs: async () => new Set(),
  }
}

function prepareD(cache: Cache, dataset: Dataset, isRefresh: boolean) {
  const lease = { task: 'job', holder: { kind: 'ttl' }, expiresAtMs: null } as const
  return prepareDataset(cache, { dataset, isRefresh, mayWait: true, lease }, { signal })
}

test('the previous copy cannot be evicted until its files are linked, and can be afterwards', async (context) => {
  const directory = await temporaryDirectory(context)
  const [root, folder] = [join(directory, 'cache'), join(directory, 'source')]
  mkdirSync(root)
  await mkdir(folder)
  for (const name of ['a', 'b']) writeFileSync(join(folder, name), name)
  const dataset: Dataset = { name: 'd', source: `${pathToFileURL(folder)}/`, include: [], exclude: [] }
  const real = await openSqliteRecord(join(directory, 'record.db'))
  context.after(() => real.close())
  const seen: { readonly linked: number; readonly evicted: number }[] = []
  const evict = async () =>
    (await evictCopies(cache, { kind: 'datasets', names: ['d'] }, null)).victims.length
  const countLinked = async () => {
    const [staged] = await real.listCopies({ states: ['staging'] }, Date.now())
    const files = staged ? join(stagingDirectory(root), staged.copyId, 'files') : ''
    return ['a', 'b'].filter((name) => existsSync(join(files, name))).length
  }
  const look = async () => seen.push({ linked: await countLinked(), evicted: await evict() })
  const isAdmitted = async () => (await real.listCopies({ states: ['staging'] }, Date.now())).length > 0
  /**
   * The real record, with an operator who evicts the dataset as soon as its copy is leased for its files, before it is
   * released, and after. (While the source is listed the copy is leased, too, and given back before room is made.)
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
  const cache = makeCache({ record, root, policy: {} })
  const prepare = (isRefresh: boolean) => prepareD(cache, dataset, isRefresh)
  const first = await prepare(false)
  await real.releaseUses({ leaseId: first.leaseId }, Date.now())
  writeFileSync(join(folder, 'c'), 'c')
  const second = await prepare(true)
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

test('the previous copy makes room for a refresh where there is none for both', async (context) => {
  const directory = await temporaryDirectory(context)
  const [root, folder] = [join(directory, 'cache'), join(directory, 'source')]
  mkdirSync(root)
  mkdirSync(folder)
  writeFileSync(join(folder, 'a'), 'a')
  const dataset: Dataset = { name: 'd', source: `${pathToFileURL(folder)}/`, include: [], exclude: [] }
  const record = await openSqliteRecord(join(directory, 'record.db'))
  context.after(() => record.close())
  const cache = makeCache({ record, root, policy: { maxDatasets: 1 } })
  const first = await prepareD(cache, dataset, false)
  await record.releaseUses({ leaseId: first.leaseId }, Date.now())
  writeFileSync(join(folder, 'b'), 'b')
  const second = await prepareD(cache, dataset, true)
  assert.notEqual(second.copy.version, first.copy.version)
  const ready = await record.listCopies({ states: ['ready'] }, Date.now())
  assert.deepEqual(
    ready.map(({ copyId }) => copyId),
    [second.copy.copyId],
  )
})

test('nothing is taken from a copy that was found damaged', async (context) => {
  const directory = await temporaryDirectory(context)
  const [root, folder] = [join(directory, 'cache'), join(directory, 'source')]
  mkdirSync(root)
  mkdirSync(folder)
  writeFileSync(join(folder, 'a'), 'a')
  const dataset: Dataset = { name: 'd', source: `${pathToFileURL(folder)}/`, include: [], exclude: [] }
  const record = await openSqliteRecord(join(directory, 'record.db'))
  context.after(() => record.close())
  const cache = makeCache({ record, root, policy: {} })
  const { copy } = await prepareD(cache, dataset, false)
  const damaged = join(copy.path, 'a')
  const { atime, mtime } = statSync(damaged)
  chmodSync(damaged, 0o644)
  writeFileSync(damaged, 'x')
  utimesSync(damaged, atime, mtime) // as a disk damages it
  await markDamaged(record, copy, { task: 'dsc verify', reason: 'a differs', detail: {} })
  writeFileSync(join(folder, 'b'), 'b')
  const next = await prepareD(cache, dataset, true)
  assert.notEqual(next.copy.copyId, copy.copyId)
  assert.equal(readFileSync(join(next.copy.path, 'a'), 'utf8'), 'a')
})
