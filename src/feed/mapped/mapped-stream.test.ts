import assert from 'node:assert/strict'
import { chmodSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { indexSamples } from '../../samples/index-samples.js'
import { makeTestFolder } from '../../testing/sample-folder.js'
import { EngineBatches } from '../batches/engine-batches.js'
import type { FeedSettings } from '../engine/feed-settings.js'
import { openFeedEngine } from '../engine/open-feed-engine.js'
import { folderSupply } from '../sources/folder-supply.js'

const COUNT = 64
const SHAPE = { batchSize: 8, world: 1, rank: 0, replicate: 1, last: 'drop' } as const

const line = (id: number) => JSON.stringify({ id, text: 'x'.repeat(id) })

/** Two files of lines that nobody may write to. */
async function makeLines(context: TestContext) {
  const folder = makeTestFolder(context)
  const path = (file: number) => join(folder, `${file}.jsonl`)
  for (const file of [0, 1]) {
    const ids = Array.from({ length: COUNT / 2 }, (_, i) => i + (file * COUNT) / 2)
    writeFileSync(path(file), ids.map(line).join('\n'))
    chmodSync(path(file), 0o444)
  }
  return { folder, path, listed: await indexSamples(folder, { cacheFolder: undefined }) }
}

function open(context: TestContext, listed: Parameters<typeof folderSupply>[0], settings: FeedSettings = {}) {
  const engine = openFeedEngine(folderSupply(listed), { seed: 3, threads: 1, ...settings })
  context.after(() => engine.close())
  return engine
}

const change = (path: string, edit: (bytes: Buffer) => Buffer) => {
  const bytes = edit(readFileSync(path))
  chmodSync(path, 0o644)
  writeFileSync(path, bytes)
  chmodSync(path, 0o444)
}

test('only files of packed samples that nobody may write to are mapped, and only where that was not refused', async (context) => {
  const { listed, path } = await makeLines(context)
  assert.equal(open(context, listed).mapped?.files.descriptors.length, 2)
  assert.equal(open(context, listed, { isMapping: false }).mapped, undefined)
  assert.equal(open(context, listed, { isConformance: true }).mapped, undefined)
  chmodSync(path(1), 0o464)
  assert.equal(open(context, listed).mapped, undefined, 'a group may write to it')
})

test('a file that is replaced under its name is fed as it was', async (context) => {
  const { folder, listed, path } = await makeLines(context)
  const reader = await EngineBatches.open(open(context, listed), SHAPE, 'raise')
  writeFileSync(join(folder, 'other'), '{}')
  renameSync(join(folder, 'other'), path(0))
  for (let step = 0; step < reader.batchesPerEpoch; step++)
    for (const { id, data } of (await reader.read(0, step)).items) assert.equal(data.toString(), line(id))
})

test('each sample is read and proven once; after that a probe now and then is', async (context) => {
  const { listed } = await makeLines(context)
  const engine = open(context, listed)
  const stream = engine.openStream(SHAPE, 2)
  const readBytes = () => engine.mapped!.touch.counters().mapped_read_bytes!
  await stream.start(0, 0)
  for (let epoch = 0; epoch < 3; epoch++)
    for (let step = 0; step < 8; step++) stream.release(await stream.read(epoch, step))
  assert.equal(stream.counts.hits + stream.counts.misses, 3 * COUNT)
  // Batches planned ahead (128) are read as long as their samples are not yet known to be in memory.
  const afterThree = readBytes()
  for (let epoch = 3; epoch < 60; epoch++)
    for (let step = 0; step < 8; step++) stream.release(await stream.read(epoch, step))
  const perEpoch = (readBytes() - afterThree) / 57
  assert.ok(perEpoch < listed.table.totalBytes / 16, `${perEpoch} bytes an epoch`)
})

test('a sample whose bytes changed is told by name, or left out where that was asked for', async (context) => {
  const { listed, path } = await makeLines(context)
  change(path(0), (bytes) => Buffer.from(bytes.toString().replace('{"id":5,', '{"ID":5,')))
  const strict = open(context, listed).openStream(SHAPE, 2)
  await strict.start(0, 0)
  const readAll = async () => {
    for (let step = 0; step < 8; step++) await strict.read(0, step)
  }
  await assert.rejects(readAll(), /sample 5 \(0\.jsonl:5\) is corrupt/)
  const lenient = open(context, listed).openStream(SHAPE, 2)
  await lenient.start(0, 0)
  const found: number[] = []
  const lost: number[] = []
  for (let step = 0; step < 8; step++) {
    const batch = await lenient.read(0, step, 'skip')
    found.push(...batch.slots.map(({ sample }) => sample))
    lost.push(...batch.lost)
  }
  assert.deepEqual([found.length, lost], [COUNT - 1, [5]])
})

test('a file that was cut is told, not read beyond its end', async (context) => {
  const { listed, path } = await makeLines(context)
  change(path(1), (bytes) => bytes.subarray(0, bytes.length - 10))
  const stream = open(context, listed).openStream(SHAPE, 2)
  await assert.rejects(stream.pick([COUNT - 1]), /is missing/)
  assert.deepEqual(
    (await stream.pick([3, 40])).slots.map(({ sample }) => sample),
    [3, 40],
  )
  await assert.rejects(stream.pick([COUNT]), { code: 'USAGE' })
})
