import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import type { Cache } from '../../cache/cache.js'
import { openSqliteRecord } from '../../records/sqlite/record-store.js'
import { DISK, NOW_MS } from '../../testing/example-copies.js'
import { temporaryDirectory } from '../../testing/temporary-directory.js'
import { AgentMetrics } from './agent-metrics.js'
import { createMetrics } from './metrics.js'

test('what happened is counted once, however many ask at the same time', async (context) => {
  const root = await temporaryDirectory(context)
  const record = await openSqliteRecord(join(root, 'record.db'))
  context.after(() => record.close())
  const cache = {
    record,
    root,
    node: 'node-a',
    policy: {},
    measureDisk: async () => DISK,
  } as unknown as Cache
  const metrics = createMetrics()
  const agent = new AgentMetrics(cache, metrics, () => 0)
  const use = { node: 'node-a', dataset: 'flowers', copyId: null, task: 'job', reason: 'it was ready' }
  const addUse = () =>
    record.addEvent({ ...use, atMs: NOW_MS, kind: 'leased', detail: { isHit: true, waitedMs: 0 } })
  await agent.refresh()
  await addUse()
  await Promise.all([agent.refresh(), agent.refresh(), agent.refresh()])
  assert.match(metrics.format(), /^dsc_hits_total\{dataset="flowers"\} 1$/m)
  await addUse()
  await agent.refresh()
  assert.match(metrics.format(), /^dsc_hits_total\{dataset="flowers"\} 2$/m)
})
