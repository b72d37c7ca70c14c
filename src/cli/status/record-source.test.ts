import assert from 'node:assert/strict'
import { rename, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { openSqliteRecord } from '../../records/sqlite/record-store.js'
import { temporaryDirectory } from '../../testing/temporary-directory.js'
import { createRecordSource } from './record-source.js'

test('a deleted record is said to be gone, not made anew, and is found when it is back', async (context) => {
  const path = join(await temporaryDirectory(context), 'record.db')
  const source = createRecordSource(() => openSqliteRecord(path), path)
  context.after(() => source.discard())
  const first = await source.current()
  await first.saveDataset({ name: 'a', source: 's3://b/a/', include: [], exclude: [] }, 1)
  assert.equal(await source.current(), first)
  await rename(path, `${path}.moved`)
  await assert.rejects(source.current(), { code: 'RECORD_UNAVAILABLE', message: /gone/ })
  await rename(`${path}.moved`, path)
  assert.equal((await (await source.current()).listDatasets()).length, 1)
})

test('a record that was replaced is opened anew', async (context) => {
  const directory = await temporaryDirectory(context)
  const path = join(directory, 'record.db')
  const source = createRecordSource(() => openSqliteRecord(path), path)
  context.after(() => source.discard())
  await source.current()
  const other = await openSqliteRecord(join(directory, 'other.db'))
  await other.saveDataset({ name: 'new', source: 's3://b/new/', include: [], exclude: [] }, 1)
  await other.close()
  for (const suffix of ['-wal', '-shm']) await unlink(path + suffix).catch(() => {})
  await rename(join(directory, 'other.db'), path)
  assert.deepEqual(
    (await (await source.current()).listDatasets()).map((dataset) => dataset.name),
    ['new'],
  )
})
