import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { readCopyPages } from '../../cache/status/copy-pages.js'
import { describeStatus } from '../../cache/status/status-json.js'
import { readStatus } from '../../cache/status/status-snapshot.js'
import { summarizeStatus } from '../../cache/status/summarize-status.js'
import { openSqliteRecord } from '../../records/sqlite/record-store.js'
import { NOW_MS } from '../../testing/example-copies.js'
import { fillRecord } from '../../testing/example-record.js'
import { temporaryDirectory } from '../../testing/temporary-directory.js'
import { formatStatusJson } from './status-pieces.js'

for (const filter of [{}, { node: 'gpu-02' }, { dataset: 'dataset-0003' }, { dataset: 'none' }]) {
  test(`the JSON of a status in pieces is what a snapshot says (${JSON.stringify(filter)})`, async (context) => {
    const record = await openSqliteRecord(join(await temporaryDirectory(context), 'record.db'))
    context.after(() => record.close())
    await fillRecord(record, { copies: 50, nodes: 3, stagings: 2, nowMs: NOW_MS })
    const [ownNode] = await record.listNodes()
    const options = { nowMs: NOW_MS, ownNode: ownNode! }
    const summary = await summarizeStatus(record, filter, options)
    const pieces = await gather(formatStatusJson({ record, filter, summary }))
    const described = describeStatus(await readStatus(record, filter, options))
    const whole = { ...described, copies: [...described.copies] }
    assert.deepEqual(JSON.parse(pieces.join('')), JSON.parse(JSON.stringify(whole)))
    assert.deepEqual(Object.keys(JSON.parse(pieces.join(''))), Object.keys(whole), 'in the same order')
  })
}

test('copies come page by page, each once, in the order of the record', async (context) => {
  const record = await openSqliteRecord(join(await temporaryDirectory(context), 'record.db'))
  context.after(() => record.close())
  await fillRecord(record, { copies: 50, nodes: 3, stagings: 2, nowMs: NOW_MS })
  const all = (await record.listCopies({}, NOW_MS)).map(({ copyId }) => copyId)
  for (const pageCopies of [1, 7, all.length, 100]) {
    const pages = await gather(readCopyPages(record, {}, { nowMs: NOW_MS, pageCopies }))
    assert.deepEqual(
      pages.flat().map(({ copyId }) => copyId),
      all,
    )
    assert.ok(pages.every((page) => page.length <= pageCopies))
  }
})

async function gather<Value>(values: AsyncIterable<Value>): Promise<readonly Value[]> {
  const gathered: Value[] = []
  for await (const value of values) gathered.push(value)
  return gathered
}
