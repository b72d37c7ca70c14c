import assert from 'node:assert/strict'
import { existsSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { openCsiClient } from '../../testing/csi-client.js'
import { openExampleCache } from '../../testing/example-cache.js'
import { makeMemoryMounter } from '../../testing/memory-mounter.js'
import { temporaryDirectory } from '../../testing/temporary-directory.js'
import { waitFor } from '../../testing/world.js'
import { openCsi } from './open-csi.js'

test('the plugin creates its sockets again after they were removed, and removes both when it stops', async (context) => {
  const { cache } = await openExampleCache(context)
  const kubelet = await temporaryDirectory(context)
  context.mock.timers.enable({ apis: ['setInterval'] })
  const catalog = { declared: [], rules: { datasets: {}, sources: {} } }
  const settings = { driver: 'dsc.io', kubelet, catalog, mounter: makeMemoryMounter() }
  const csi = await openCsi({ cache, settings, version: '1', onPrivate: () => {}, note: () => {} })
  const registry = join(kubelet, 'plugins_registry/dsc.io/reg.sock')
  for (const socket of [csi.path, registry]) {
    rmSync(socket)
    context.mock.timers.tick(5000)
    await waitFor(socket, () => existsSync(socket))
  }
  const client = openCsiClient(csi.path)
  context.after(() => client.close())
  assert.deepEqual(await client.call('Identity', 'Probe', {}), { ready: { value: true } })
  await csi.stop()
  assert.deepEqual([csi.path, registry].filter(existsSync), [])
})
