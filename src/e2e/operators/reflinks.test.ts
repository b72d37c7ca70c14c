import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { readFileSync, statfsSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { succeeds } from '../../testing/dsc-processes.js'
import { startHubServer } from '../../testing/hub-server.js'
import { mountReflinks, whyNoReflinks } from '../../testing/small-disk.js'
import { makeWorld } from '../../testing/world.js'

const WEIGHTS_BYTES = 40 * 2 ** 20

for (const command of ['mkfs.xfs', 'mkfs.btrfs'] as const) {
  const name = `equal files of two models share their blocks, not their inode, on a disk of ${command}`
  test(name, { skip: whyNoReflinks(command) }, async (t) => {
    const disk = await mountReflinks(t, command)
    const hub = await startHubServer()
    t.after(() => hub.close())
    const weights = randomBytes(WEIGHTS_BYTES)
    hub.commit('models/org/base', { 'model.safetensors': weights })
    hub.commit('models/org/tuned', { 'base/weights.bin': weights })
    const world = await makeWorld(t, {
      cache: { root: join(disk, 'cache') },
      datasets: {
        base: { source: 'hf://org/base', endpoint: hub.endpoint },
        tuned: { source: 'hf://org/tuned', endpoint: hub.endpoint },
      },
    })
    const prepare = async (dataset: string) => {
      const prepared = await succeeds(world.dsc('prepare', dataset, '--task', 'a'))
      return prepared.stdout.trim()
    }
    const base = await prepare('base')
    const sent = hub.sentBytes
    const { bavail, bsize } = statfsSync(disk)
    const tuned = await prepare('tuned')
    const usedBytes = (bavail - statfsSync(disk).bavail) * bsize
    assert.equal(hub.sentBytes, sent)
    assert.ok(usedBytes < WEIGHTS_BYTES / 4, `the second model took ${usedBytes} bytes`)
    const [one, other] = [join(base, 'model.safetensors'), join(tuned, 'base/weights.bin')]
    assert.notEqual(statSync(one).ino, statSync(other).ino)
    assert.ok(readFileSync(other).equals(weights))
  })
}
