import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { crc32 } from 'node:zlib'
import { isDscError } from '../../failure/dsc-error.js'
import { makeTestFolder, writeSamples } from '../../testing/sample-folder.js'
import { indexSamples } from './index-samples.js'
import { openSampleReader } from './read-samples.js'
import { openSampleTable } from './sample-table.js'

test('files become samples in the byte order of their paths, with lengths and checksums', async (context) => {
  const root = makeTestFolder(context)
  mkdirSync(join(root, 'b'))
  writeFileSync(join(root, 'b', 'x.png'), 'xx')
  writeFileSync(join(root, 'a.png'), 'a')
  writeFileSync(join(root, 'empty'), '')
  symlinkSync('/etc/passwd', join(root, 'link'))
  const { table } = await indexSamples(root, { cacheFolder: makeTestFolder(context) })
  const rows = Array.from({ length: table.count }, (_, i) => [
    table.nameOf(i),
    table.lengths[i],
    table.crcs[i],
  ])
  assert.deepEqual(rows, [
    ['a.png', 1, crc32('a')],
    ['b/x.png', 2, crc32('xx')],
    ['empty', 0, 0],
  ])
})

test('a folder is listed once, and again when a file has changed', async (context) => {
  const root = makeTestFolder(context)
  const cacheFolder = makeTestFolder(context)
  writeSamples(root, 5, () => 100)
  const first = await indexSamples(root, { cacheFolder })
  const second = await indexSamples(root, { cacheFolder })
  assert.deepEqual([first.isCached, second.isCached], [false, true])
  assert.equal(second.table.fingerprint, first.table.fingerprint)
  writeFileSync(join(root, '000003.bin'), 'other')
  const third = await indexSamples(root, { cacheFolder })
  assert.equal(third.isCached, false)
  assert.notEqual(third.table.fingerprint, first.table.fingerprint)
})

test('members of one key in a tar shard are one sample; single members are samples by themselves', async (context) => {
  const folder = makeTestFolder(context)
  const cacheFolder = makeTestFolder(context)
  const long = `d/${'n'.repeat(120)}`
  for (const name of ['s1.jpg', 's1.cls', 's2.jpg', 's2.cls', `${long}.jpg`, `${long}.cls`]) {
    mkdirSync(join(folder, 'in', 'd'), { recursive: true })
    writeFileSync(join(folder, 'in', name), `bytes of ${name}`)
  }
  const tar = (shard: string, format: string, names: string[]) => {
    mkdirSync(join(folder, shard))
    execFileSync('tar', [
      '-C',
      join(folder, 'in'),
      `--format=${format}`,
      '-cf',
      join(folder, shard, '0.tar'),
      ...names,
    ])
  }
  tar('pairs', 'gnu', ['s1.jpg', 's1.cls', 's2.jpg', 's2.cls', `${long}.jpg`, `${long}.cls`])
  const pairs = await indexSamples(join(folder, 'pairs'), { cacheFolder })
  assert.equal(pairs.table.format, 'tar')
  assert.deepEqual([0, 1, 2].map(pairs.table.nameOf), ['s1', 's2', long])

  tar('singles', 'pax', ['s1.jpg', 's2.jpg', `${long}.jpg`])
  const singles = await indexSamples(join(folder, 'singles'), { cacheFolder })
  assert.equal(singles.table.format, 'member')
  const reader = openSampleReader(singles.root, singles.table)
  const samples = Uint32Array.of(2, 0, 1)
  const rooms = Array.from(samples, (sample) => Buffer.alloc(singles.table.lengths[sample]!))
  const read: boolean[] = []
  reader.readAll(samples, {
    place: (i) => rooms[i],
    done: (i, isRead) => {
      read[i] = isRead
    },
  })
  reader.close()
  assert.deepEqual(read, [true, true, true])
  assert.deepEqual(rooms.map(String), [`bytes of ${long}.jpg`, 'bytes of s1.jpg', 'bytes of s2.jpg'])
})

test('a table of another version is refused instead of misread; the layout is pinned: change DSCSAMP1 with it', async (context) => {
  const root = makeTestFolder(context)
  writeFileSync(join(root, 'a'), 'abc')
  const { table } = await indexSamples(root, { cacheFolder: makeTestFolder(context) })
  assert.equal(Buffer.from(table.bytes.slice(0, 8)).toString(), 'DSCSAMP1')
  assert.equal(table.bytes.length, 128 + 28 + 8 + 1 + 1)
  const damaged = table.bytes.slice()
  damaged[7] = 0x32
  assert.throws(
    () => openSampleTable(damaged),
    (error) => isDscError(error, 'FEED_PROTOCOL'),
  )
})

test('a folder without files is refused by name', async (context) => {
  await assert.rejects(indexSamples(makeTestFolder(context), { cacheFolder: '/nonexistent' }), (error) =>
    isDscError(error, 'SOURCE_EMPTY'),
  )
})
