import assert from 'node:assert/strict'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import type { Cache } from '../../cache/cache.js'
import { openSqliteRecord } from '../../records/sqlite/record-store.js'
import { DISK, exampleCopy, exampleDataset, NOW_MS } from '../../testing/example-copies.js'
import { temporaryDirectory } from '../../testing/temporary-directory.js'
import { leaseOfPod } from '../csi/volume-leases.js'
import { AgentMetrics } from './agent-metrics.js'
import { createMetrics } from './metrics.js'

async function openMetrics(context: TestContext) {
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
  return { record, metrics, agent: new AgentMetrics(cache, metrics, () => 0) }
}

test('what happened is counted once, however many ask at the same time', async (context) => {
  const { record, metrics, agent } = await openMetrics(context)
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

test('copies and their bytes are those of the node', async (context) => {
  const { record, metrics, agent } = await openMetrics(context)
  for (const [index, node] of ['node-a', 'node-a', 'node-a', 'node-b'].entries())
    await record.addAdopted(
      exampleCopy(`data-${index}`, { copyId: `${index}`, node, chargedBytes: 10 }),
      NOW_MS,
    )
  await record.setLock({ dataset: 'data-0' }, { by: 'ops', reason: 'paper', atMs: 0 }, NOW_MS)
  await agent.refresh()
  assert.match(metrics.format(), /^dsc_copies\{state="ready"\} 3$/m)
  assert.match(metrics.format(), /^dsc_charged_bytes 30$/m)
})

test('datasets of pods and their bytes are those of the namespace of the pod', async (context) => {
  const { record, metrics, agent } = await openMetrics(context)
  const lines = async () => {
    await agent.refresh()
    return metrics.format().match(/^dsc_volume.*$/gm)
  }
  assert.equal(await lines(), null)
  for (const [copyId, chargedBytes] of [
    ['flowers', 10],
    ['birds', 5],
  ] as const)
    await record.addAdopted(exampleCopy(copyId, { copyId, chargedBytes }), NOW_MS)
  const take = (copyId: string, namespace: string, name: string) =>
    record.leaseCopy(
      { copyId, purpose: 'use', lease: leaseOfPod({ uid: `${namespace}-${name}`, namespace, name }) },
      NOW_MS,
    )
  for (const name of ['one', 'two']) await take('flowers', 'team-a', name)
  await take('birds', 'team-b', 'one')
  await take('flowers', 'team-b', 'one')
  const lease = leaseOfPod({ uid: 'team-b-two', namespace: 'team-b', name: 'two' })
  const coming = { dataset: 'bees', node: 'node-a', source: exampleDataset('bees'), origin: 's3' as const }
  const directoryOf = (copyId: string) => copyId
  await record.joinOrReserve(
    { ...coming, lease, stager: { ...lease, expiresAtMs: NOW_MS }, directoryOf, isRefresh: false },
    NOW_MS,
  )
  assert.deepEqual(await lines(), [
    'dsc_volumes{pod_namespace="team-a",state="ready"} 2',
    'dsc_volumes{pod_namespace="team-a",state="waiting"} 0',
    'dsc_volumes{pod_namespace="team-b",state="ready"} 2',
    'dsc_volumes{pod_namespace="team-b",state="waiting"} 1',
    'dsc_volume_bytes{pod_namespace="team-a"} 10',
    'dsc_volume_bytes{pod_namespace="team-b"} 15',
  ])
  await record.releaseUses({}, NOW_MS)
  assert.equal(await lines(), null)
})
