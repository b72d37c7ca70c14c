import assert from 'node:assert/strict'
import { test } from 'node:test'
import { makeCsiNode, POD } from '../../testing/csi-node.js'
import { exampleDataset } from '../../testing/example-copies.js'
import { openHeldSource } from '../../testing/held-source.js'
import { VolumeStaging } from './volume-staging.js'

const FILES = Object.fromEntries(Array.from({ length: 100 }, (_, at) => [`${at}.txt`, 'x'.repeat(1000)]))
/** All files take 20 s. */
const FILE_EVERY_MS = 200

test('a held call ends before its copy is ready, so that kubelet does not pause when it is', async (context) => {
  const source = openHeldSource(FILES)
  const { cache } = await makeCsiNode(context, { openSource: async () => source })
  const arrivals = Object.keys(FILES).map((key) => source.hold(key))
  const timer = setInterval(() => arrivals.shift()?.(), FILE_EVERY_MS)
  context.after(() => clearInterval(timer))
  const staging = new VolumeStaging({
    cache,
    dataset: exampleDataset('flowers'),
    pod: POD,
    note: assert.fail,
  })
  assert.equal(await staging.waitAtMost(45_000, 2000), undefined)
  staging.abort()
  await assert.rejects(staging.prepared, { code: 'INTERRUPTED' })
})
