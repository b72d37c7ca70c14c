import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { openSqliteRecord } from '../../records/sqlite/record-store.js'
import { openExampleCache } from '../../testing/example-cache.js'
import { temporaryDirectory } from '../../testing/temporary-directory.js'
import type { Cache } from '../cache.js'
import { saveNode } from '../save-node.js'

const beginnings: readonly [string, (cache: Cache) => Promise<void>][] = [
  ['', async () => {}],
  [', though an agent has saved the node', (cache) => saveNode(cache)],
]

for (const [how, begin] of beginnings)
  test(`a new record counts the copies of a full cache before anything is fetched beside them${how}`, async (context) => {
    const { cache, makeDataset, prepare } = await openExampleCache(context, { policy: { maxDatasets: 2 } })
    for (const name of ['bees', 'birds']) await prepare(makeDataset(name))
    const record = await openSqliteRecord(join(await temporaryDirectory(context), 'new.db'))
    context.after(() => record.close())
    const withNewRecord = { ...cache, record }
    await begin(withNewRecord)
    await assert.rejects(() => prepare(makeDataset('cats'), { cache: withNewRecord }), {
      code: 'QUOTA_EXCEEDED',
      message: /held: bees [\s\S]*held: birds [^\n]*leased by unknown \(found on disk\)/,
    })
    const copies = await record.listCopies({ node: cache.node, states: ['ready'] }, cache.nowMs())
    assert.deepEqual(copies.map(({ dataset }) => dataset).sort(), ['bees', 'birds'])
  })
