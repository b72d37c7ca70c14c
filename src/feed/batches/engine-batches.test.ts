import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { indexSamples } from '../../samples/index-samples.js'
import { makeTestFolder, writeSamples } from '../../testing/sample-folder.js'
import { openFeedEngine } from '../engine/open-feed-engine.js'
import { folderSupply } from '../sources/folder-supply.js'
import { EngineBatches } from './engine-batches.js'

test('a batch that cannot be read from the arena gives its room back', async (context) => {
  const folder = makeTestFolder(context)
  const root = join(folder, 'samples')
  writeSamples(root, 400, () => 800)
  const engine = openFeedEngine(
    folderSupply(await indexSamples(root, { cacheFolder: join(folder, 'cache') })),
    { threads: 1, memoryBytes: 64_000, isCarrying: false },
  )
  let isBroken = true
  const { file } = engine.arena
  const read = file.read
  Object.assign(file, {
    read(target: Uint8Array, at: number) {
      if (isBroken) throw new Error('the arena cannot be read')
      read(target, at)
    },
  })
  const shape = { batchSize: 16, world: 1, rank: 0, replicate: 1, last: 'drop' } as const
  const reader = await EngineBatches.open(engine, shape, 'raise')
  context.after(() => reader.close())
  // More than the arena could hold if all were kept.
  for (let step = 0; step < 12; step++) await assert.rejects(reader.read(0, step), /cannot be read/)
  isBroken = false
  assert.equal((await reader.read(0, 12)).items.length, 16)
})
