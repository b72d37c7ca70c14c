import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { openExampleCache } from '../../testing/example-cache.js'
import { temporaryDirectory } from '../../testing/temporary-directory.js'
import { leaveRoomToKubelet } from './kubelet-room.js'

const measureDisk = async () => ({ capacityBytes: 1000, freeBytes: 900, inodesTotal: 0, inodesFree: 0 })

test('copies leave a fifth of kubelet’s own disk free, unless minFree is set', async (context) => {
  const kubelet = await temporaryDirectory(context)
  mkdirSync(join(kubelet, 'pods'))
  const { cache } = await openExampleCache(context, { measureDisk, policy: { maxPercent: 70 } })
  const shared = await leaveRoomToKubelet(cache, kubelet)
  assert.deepEqual(shared.policy, { maxPercent: 70, minFreeBytes: 200 })
  const chosen = { ...cache, policy: { minFreeBytes: 0 } }
  assert.equal(await leaveRoomToKubelet(chosen, kubelet), chosen)
})

test('a disk without kubelet may be filled', async (context) => {
  const { cache } = await openExampleCache(context, { measureDisk })
  const elsewhere = mkdtempSync('/dev/shm/dsc-test-')
  context.after(() => rmSync(elsewhere, { recursive: true }))
  mkdirSync(join(elsewhere, 'pods'))
  assert.equal(await leaveRoomToKubelet(cache, elsewhere), cache)
  assert.equal(await leaveRoomToKubelet(cache, '/missing'), cache)
})
