import assert from 'node:assert/strict'
import fs, { cpSync, readFileSync, truncateSync, utimesSync, writeFileSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { makeTestFolder, writeSamples } from '../testing/sample-folder.js'
import { indexSamples } from './index-samples.js'
import { digestContent } from './later-checksums.js'
import { isIntact, SampleReader } from './read-samples.js'
import type { SampleTable } from './sample-table.js'

const COUNT = 50

function makeFolder(context: TestContext, count = COUNT) {
  const folder = makeTestFolder(context)
  const root = join(folder, 'samples')
  writeSamples(root, count, (id) => 100 + id)
  return { root, cacheFolder: join(folder, 'cache') }
}

function readSamples(root: string, table: SampleTable, count: number): void {
  for (let sample = 0; sample < count; sample++)
    assert.ok(isIntact(table, sample, readFileSync(join(root, table.nameOf(sample)))))
}

test('a folder listed without reading it has the same samples, and the same table once all are read', async (context) => {
  const { root, cacheFolder } = makeFolder(context)
  const whole = (await indexSamples(root, { cacheFolder: undefined })).table
  const later = await indexSamples(root, { cacheFolder, isReadLater: true })
  assert.deepEqual([later.table.fingerprint, later.table.count], ['', COUNT])
  assert.deepEqual(later.table.lengths, whole.lengths)
  readSamples(root, later.table, COUNT)
  later.keepKnown!()
  const kept = await indexSamples(root, { cacheFolder, isReadLater: true })
  assert.ok(kept.isCached)
  assert.deepEqual(Buffer.from(kept.table.bytes), Buffer.from(whole.bytes))
})

test('a table is kept with the few samples that no epoch has read yet', async (context) => {
  const { root, cacheFolder } = makeFolder(context)
  const whole = (await indexSamples(root, { cacheFolder: undefined })).table
  const { table, keepKnown } = await indexSamples(root, { cacheFolder, isReadLater: true })
  readSamples(root, table, COUNT - 3)
  keepKnown!()
  const kept = await indexSamples(root, { cacheFolder, isReadLater: true })
  assert.ok(kept.isCached)
  assert.deepEqual(Buffer.from(kept.table.bytes), Buffer.from(whole.bytes))
})

test('a table is not kept with a sample that was not read and has changed, nor with many or long ones', async (context) => {
  const { root, cacheFolder } = makeFolder(context)
  const { table, keepKnown } = await indexSamples(root, { cacheFolder, isReadLater: true })
  readSamples(root, table, COUNT - 1)
  utimesSync(join(root, table.nameOf(COUNT - 1)), new Date(0), new Date(0))
  keepKnown!()
  assert.equal((await indexSamples(root, { cacheFolder, isReadLater: true })).isCached, false)
  const many = 1025
  const large = makeFolder(context, many)
  const listed = await indexSamples(large.root, { cacheFolder: large.cacheFolder, isReadLater: true })
  listed.keepKnown!()
  assert.deepEqual([listed.table.count, listed.table.known![0]], [many, 0])
  const long = makeFolder(context, 1)
  writeFileSync(join(long.root, 'long.bin'), '')
  truncateSync(join(long.root, 'long.bin'), 64 * 2 ** 20)
  const measured = await indexSamples(long.root, { cacheFolder: long.cacheFolder, isReadLater: true })
  measured.keepKnown!()
  assert.deepEqual([...measured.table.known!], [0, 0])
})

test('bytes that change after they were read are refused', async (context) => {
  const { root, cacheFolder } = makeFolder(context)
  const { table } = await indexSamples(root, { cacheFolder, isReadLater: true })
  readSamples(root, table, COUNT)
  assert.equal(isIntact(table, 3, Buffer.alloc(103)), false)
})

test('a file that was written to after it was listed is not read for the first time', async (context) => {
  const { root, cacheFolder } = makeFolder(context)
  const { table } = await indexSamples(root, { cacheFolder, isReadLater: true })
  utimesSync(join(root, table.nameOf(3)), new Date(0), new Date(0))
  const reader = new SampleReader(root, table)
  const read: boolean[] = []
  const sink = {
    place: () => Buffer.alloc(103),
    done: (_: number, isRead: boolean) => void read.push(isRead),
  }
  reader.readAll(Uint32Array.of(3), sink)
  table.known![3] = 1 // its checksum tells from now on
  reader.readAll(Uint32Array.of(3), sink)
  assert.deepEqual(read, [false, true])
})

test('a file that is written to while it is read for the first time is not taken for read', async (context) => {
  const { root, cacheFolder } = makeFolder(context)
  const { table } = await indexSamples(root, { cacheFolder, isReadLater: true })
  const { readSync } = fs
  context.mock.method(fs, 'readSync', (...words: Parameters<typeof readSync>) => {
    utimesSync(join(root, table.nameOf(3)), new Date(0), new Date(0))
    return readSync(...words)
  })
  syncBuiltinESMExports()
  context.after(() => {
    context.mock.restoreAll()
    syncBuiltinESMExports()
  })
  const read: boolean[] = []
  new SampleReader(root, table).readAll(Uint32Array.of(3), {
    place: () => Buffer.alloc(103),
    done: (_, isRead) => void read.push(isRead),
  })
  assert.deepEqual(read, [false])
})

test('other content under the same names and lengths has another digest, a copy of the folder the same', async (context) => {
  const { root } = makeFolder(context)
  const { table } = await indexSamples(root, { cacheFolder: undefined, isReadLater: true })
  const copied = `${root}-copied`
  cpSync(root, copied, { recursive: true })
  assert.equal(digestContent(copied, table), digestContent(root, table))
  for (let sample = 0; sample < COUNT; sample++)
    writeFileSync(join(copied, table.nameOf(sample)), Buffer.alloc(100 + sample, 1))
  assert.notEqual(digestContent(copied, table), digestContent(root, table))
})
