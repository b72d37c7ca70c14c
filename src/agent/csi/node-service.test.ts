import assert from 'node:assert/strict'
import { statfs } from 'node:fs/promises'
import { test } from 'node:test'
import { markDamaged } from '../../sources/damaged-copies.js'
import { LATER, makeCsiNode, POD, REQUEST, TARGET } from '../../testing/csi-node.js'
import { nodeService } from './node-service.js'

test('a volume is unhealthy from the moment its copy is found damaged until it is repaired', async (context) => {
  const { cache, source, start } = await makeCsiNode(context)
  source.release()
  const volumes = start()
  const { nodeGetVolumeHealth } = nodeService(volumes, cache)
  const ask = (volumeId: string, volumePublishPath = TARGET) =>
    nodeGetVolumeHealth!({ volumeId, volumePublishPath } as never, LATER)
  const healthy = { volumeHealth: { volumeId: 'csi-1', healthStatuses: [] } }
  await assert.rejects(async () => ask('csi-1'), { status: 'NOT_FOUND' })
  await volumes.publish(REQUEST, LATER)
  assert.deepEqual(await ask('csi-1'), healthy)
  assert.deepEqual(await ask('csi-1', ''), healthy, 'CSI need not tell the path')
  await assert.rejects(async () => ask('csi-1', `${TARGET}-2`), { status: 'NOT_FOUND' })
  await assert.rejects(async () => ask('another'), { status: 'NOT_FOUND' })
  await assert.rejects(async () => ask('another', ''), { status: 'NOT_FOUND' })

  const [copy] = await cache.record.listCopies({ dataset: 'flowers' }, cache.nowMs())
  const found = { task: 'dsc verify', reason: '1 file differs', detail: {} }
  await markDamaged(cache.record, { ...copy!, copyId: 'another' }, found)
  assert.deepEqual(await ask('csi-1'), healthy, 'only another copy is damaged')
  await markDamaged(cache.record, copy!, found)
  assert.deepEqual(await ask('csi-1'), {
    volumeHealth: {
      volumeId: 'csi-1',
      healthStatuses: [
        {
          status: 'DATA_LOSS',
          reason: 'Damaged',
          message: 'files of flowers differ from their source; try: dsc verify flowers --repair',
        },
      ],
    },
  })
  const { node, dataset, copyId } = copy!
  await cache.record.addEvent({ ...found, atMs: cache.nowMs(), kind: 'repaired', node, dataset, copyId })
  assert.deepEqual(await ask('csi-1'), healthy)
  assert.deepEqual([...volumes.listPods()], [POD.uid])
})

test('the room of a volume is that of the cache: only root may look into the folders of pods', async (context) => {
  const { cache, source, start } = await makeCsiNode(context)
  source.release()
  const volumes = start()
  await volumes.publish(REQUEST, LATER)
  const { nodeGetVolumeStats } = nodeService(volumes, cache)
  const answer = await nodeGetVolumeStats!({ volumeId: 'csi-1', volumePath: TARGET } as never, LATER)
  const [bytes] = (answer as { readonly usage: readonly { readonly unit: string; readonly total: number }[] })
    .usage
  const { blocks, bsize } = await statfs(cache.root)
  assert.deepEqual([bytes!.unit, bytes!.total], ['BYTES', blocks * bsize])
})
