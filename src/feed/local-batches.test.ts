import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { makeTestFolder, writeSamples } from '../testing/sample-folder.js'
import { openLocalBatches } from './local-batches.js'
import { openLocalFeeder } from './open-feeder.js'
import { indexSamples } from './samples/index-samples.js'

test('a batch that cannot be read from the arena gives its room back', async (context) => {
  const folder = makeTestFolder(context)
  const root = join(folder, 'samples')
  writeSamples(root, 400, () => 800)
  const opened = openLocalFeeder(await indexSamples(root, { cacheFolder: join(folder, 'cache') }), {
    threads: 1,
    memoryBytes: 64_000,
    isCarrying: false,
    roomTimeoutMs: 400,
  })
  let isBroken = true
  const arenaFile = {
    ...opened.arenaFile,
    read(target: Uint8Array, at: number) {
      if (isBroken) throw new Error('the arena cannot be read')
      opened.arenaFile.read(target, at)
    },
  }
  const shape = { batchSize: 16, world: 1, rank: 0, replicate: 1, last: 'drop' } as const
  const reader = await openLocalBatches({ ...opened, arenaFile }, shape, false)
  context.after(() => reader.close())
  // More than the arena has room for, if they were all kept.
  for (let step = 0; step < 12; step++) await assert.rejects(reader.read(0, step), /cannot be read/)
  isBroken = false
  assert.equal((await reader.read(0, 12)).items.length, 16)
})
