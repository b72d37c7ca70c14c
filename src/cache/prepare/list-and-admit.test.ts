import assert from 'node:assert/strict'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { pathToFileURL } from 'node:url'
import type { Dataset } from '../../model/dataset.js'
import { openSqliteRecord } from '../../records/sqlite/record-store.js'
import { temporaryDirectory } from '../../testing/temporary-directory.js'
import type { Cache } from '../cache.js'
import { identityFile } from '../cache-layout.js'
import { openFileSource } from '../sources/file/file-source.js'
import { prepareDataset } from './prepare-dataset.js'

test('who takes over an admitted staging makes the room first that whoever was admitted had not made yet', async (t) => {
  const directory = await temporaryDirectory(t)
  const root = join(directory, 'cache')
  mkdirSync(root)
  writeFileSync(identityFile(root), '')
  const record = await openSqliteRecord(join(directory, 'record.db'))
  t.after(() => record.close())
  for (const name of ['old', 'new']) {
    mkdirSync(join(directory, name))
    writeFileSync(join(directory, name, 'a'), name)
  }
  let nowMs = Date.now()
  const cache: Cache = {
    ...{ record, root, node: 'n', policy: { maxDatasets: 1 }, transfer: {}, nowMs: () => nowMs },
    identity: { cacheId: 'c', machine: { id: 'm', host: 'h', isLasting: true } },
    openSource: async (dataset) =>
      openFileSource({ ...dataset, source: `${pathToFileURL(join(directory, dataset.name))}/` }),
    measureDisk: async () => ({ capacityBytes: 1e12, freeBytes: 1e12, inodesTotal: 1e9, inodesFree: 1e9 }),
    listSlurmJobs: async () => new Set(),
  }
  const prepare = (name: string) => {
    const dataset: Dataset = { name, source: `s3://bucket/${name}/`, include: [], exclude: [] }
    const lease = { task: name, holder: { kind: 'ttl' }, expiresAtMs: nowMs + 1000 } as const
    return prepareDataset(cache, { dataset, isRefresh: false, mayWait: true, lease }, { signal: t.signal })
  }
  await prepare('old')
  nowMs += 3_600_000
  const { mock } = t.mock.method(record, 'finishEviction', () => {
    throw new Error('killed')
  })
  await assert.rejects(prepare('new'), /killed/)
  const states = async () =>
    (await record.listCopies({ node: 'n' }, nowMs)).map(({ state }) => state).toSorted()
  assert.deepEqual(await states(), ['evicting', 'staging'])
  mock.restore()
  const { copy } = await prepare('new')
  assert.ok(existsSync(copy.path))
  assert.deepEqual(await states(), ['ready'])
})
