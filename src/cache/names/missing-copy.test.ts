import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { openSqliteRecord } from '../../records/sqlite/record-store.js'
import { exampleCopy, exampleDataset, NOW_MS } from '../../testing/example-copies.js'
import { temporaryDirectory } from '../../testing/temporary-directory.js'
import { missingCopy } from './missing-copy.js'

test('missingCopy says where the dataset has copies, and what to do', async (context) => {
  const record = await openSqliteRecord(join(await temporaryDirectory(context), 'record.db'))
  context.after(() => record.close())
  await record.saveDataset(exampleDataset('flowers'), NOW_MS)
  const tell = async (node: string) => {
    const { code, message, hint } = await missingCopy(
      record,
      { dataset: 'flowers', node },
      { command: 'dsc verify', otherwise: 'dsc prepare flowers' },
    )
    assert.equal(code, 'COPY_NOT_FOUND')
    return [message, hint]
  }
  assert.deepEqual(await tell('node-a'), [
    'flowers has no copy on node node-a, and no other node has a ready one',
    'dsc prepare flowers',
  ])
  for (const node of ['node-c', 'node-b'])
    await record.addAdopted(exampleCopy('flowers', { copyId: `id-${node}`, node }), NOW_MS)
  assert.deepEqual(await tell('node-a'), [
    'flowers has no copy on node node-a, but on node-b, node-c',
    'dsc verify flowers on node-b',
  ])
  await record.joinOrReserve(
    {
      dataset: 'flowers',
      node: 'node-a',
      source: exampleDataset('flowers'),
      origin: 's3',
      directoryOf: (copyId: string) => `/cache/staging/${copyId}`,
      isRefresh: false,
      lease: { task: 'job', holder: { kind: 'ttl' }, expiresAtMs: null },
      stager: { task: 'job', holder: { kind: 'ttl' }, expiresAtMs: null },
    },
    NOW_MS,
  )
  assert.deepEqual(await tell('node-a'), [
    'the copy of flowers on node node-a is reserved',
    'dsc status --dataset flowers',
  ])
})
