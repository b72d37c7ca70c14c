import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { describeStatus } from '../../cache/status/describe-status.js'
import { readCopyPages, readEventPages, readLeasePages } from '../../cache/status/record-pages.js'
import { readStatus } from '../../cache/status/status-snapshot.js'
import { summarizeStatus } from '../../cache/status/summarize-status.js'
import { openSqliteRecord } from '../../records/sqlite/record-store.js'
import { NOW_MS } from '../../testing/example-copies.js'
import { fillRecord } from '../../testing/example-record.js'
import { temporaryDirectory } from '../../testing/temporary-directory.js'
import { formatStatusJson, formatStatusLines } from './status-pieces.js'

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
    const lines = (await gather(formatStatusLines({ record, filter, summary }))).join('').split('\n')
    const { nodes, copies, layouts, leases, transfers, waits, events } = whole
    const expected = Object.entries({
      node: nodes,
      copy: copies,
      layout: layouts,
      lease: leases,
      transfer: transfers,
      wait: waits,
      event: events,
    }).flatMap(([type, rows]) => rows.map((row) => JSON.stringify({ dsc: 1, type, ...row })))
    assert.deepEqual(lines, [...expected, ''])
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

test('leases and history come page by page, each once, in the order of the record', async (context) => {
  const record = await openSqliteRecord(join(await temporaryDirectory(context), 'record.db'))
  context.after(() => record.close())
  await fillRecord(record, { copies: 50, nodes: 3, stagings: 2, nowMs: NOW_MS })
  const leases = await record.listLeases({})
  for (const pageLeases of [1, 7, leases.length, 100]) {
    const pages = await gather(readLeasePages(record, {}, { pageLeases }))
    assert.deepEqual(pages.flat(), leases)
    assert.ok(pages.every((page) => page.length <= pageLeases))
  }
  const events = await record.listEvents({ limit: 1000 })
  for (const [limit, pageEvents] of [
    [5, 2],
    [6, 2],
    [1000, 7],
    [1, 7],
    [7, 7],
  ] as const) {
    const pages = await gather(readEventPages(record, { limit }, { pageEvents }))
    assert.deepEqual(pages.flat(), events.slice(0, limit))
    assert.ok(pages.every((page) => page.length <= pageEvents))
  }
})

async function gather<Value>(values: AsyncIterable<Value>): Promise<readonly Value[]> {
  const gathered: Value[] = []
  for await (const value of values) gathered.push(value)
  return gathered
}
