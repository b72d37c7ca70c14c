import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  realpathSync,
  renameSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { crc32 } from 'node:zlib'
import { isDscError } from '../failure/dsc-error.js'
import { makeTestFolder, namesOf, writeSamples } from '../testing/sample-folder.js'
import { fromText } from './byte-path.js'
import { indexSamples } from './index-samples.js'
import { SampleReader } from './read-samples.js'
import { tableFiles } from './sample-table.js'
import { SampleTableBuilder } from './sample-table-builder.js'

test('links to files and folders are followed; loops and links to nothing are left out and told', async (context) => {
  const root = makeTestFolder(context)
  const elsewhere = makeTestFolder(context)
  writeFileSync(join(elsewhere, 'blob'), 'blob')
  mkdirSync(join(root, 'real'))
  writeFileSync(join(root, 'real', 'x'), 'x')
  symlinkSync(join(elsewhere, 'blob'), join(root, 'file'))
  symlinkSync('real', join(root, 'folder'))
  symlinkSync('..', join(root, 'real', 'up'))
  symlinkSync('nowhere', join(root, 'dangling'))
  symlinkSync('self', join(root, 'self'))
  const { names, leftOut } = await namesOf(context, root)
  assert.deepEqual(names, ['file', 'folder/x', 'real/x'])
  assert.deepEqual(Object.fromEntries(leftOut.map(({ path, reason }) => [path, reason])), {
    dangling: 'a link to nothing',
    'folder/up': 'leads back into its own folders',
    'real/up': 'leads back into its own folders',
    self: 'a link to itself',
  })
  assert.deepEqual((await namesOf(context, root, { links: 'inside' })).names, ['folder/x', 'real/x'])
})

for (const name of ['a.tar.gz', 'a.jsonl.gz', 'a.parquet', 'shard.00000.mds.zstd', 'a.arrow', 'a.tfrecord']) {
  test(`a folder of files like ${name} is refused by name, unless each file is to be a sample`, async (context) => {
    const root = makeTestFolder(context)
    writeFileSync(join(root, name), 'many samples')
    writeFileSync(join(root, 'index.json'), '{}')
    await assert.rejects(namesOf(context, root), { code: 'USAGE' })
    assert.deepEqual((await namesOf(context, root, { format: 'files' })).names.length, 2)
  })
}

test('names that are not UTF-8 are names like others', async (context) => {
  const root = makeTestFolder(context)
  const bytes = (last: number) => Buffer.concat([Buffer.from(`${root}/caf`), Buffer.from([last])])
  writeFileSync(bytes(0xe9), 'é in latin1')
  writeFileSync(bytes(0xe8), 'è in latin1')
  const { table, names } = await namesOf(context, root)
  assert.deepEqual(names, ['caf\uFFFD', 'caf\uFFFD'])
  assert.deepEqual([0, 1].map(table.rawNameOf), ['caf\xe8', 'caf\xe9'])
  const rooms = [0, 1].map((sample) => Buffer.alloc(table.lengths[sample]!))
  const reader = new SampleReader(root, table)
  reader.readAll(Uint32Array.of(0, 1), { place: (i) => rooms[i], done: (_, isRead) => assert.ok(isRead) })
  reader.close()
  assert.deepEqual(rooms.map(String), ['è in latin1', 'é in latin1'])
})

test('what a rule forbids to send cannot be read, whatever a table names and wherever links lead', async (context) => {
  const folder = realpathSync(makeTestFolder(context))
  const root = join(folder, 'served')
  mkdirSync(root)
  writeFileSync(join(folder, 'secret'), 'secret')
  writeFileSync(join(root, 'own'), 'mine!!')
  symlinkSync(join(folder, 'secret'), join(root, 'link'))
  execFileSync('mkfifo', [join(root, 'pipe')])
  const samples = new SampleTableBuilder()
  const paths = ['own', '../secret', 'link', 'pipe'].map(fromText)
  for (const [file, name] of paths.entries())
    samples.add({ name, file, offset: 0, length: 6, crc32: crc32('secret') })
  const table = samples.build(tableFiles({ format: 'file' }, paths))
  const read: boolean[] = []
  const reader = new SampleReader(root, table, { rule: { below: [root] } })
  reader.readAll(Uint32Array.of(0, 1, 2, 3), {
    place: () => Buffer.alloc(6),
    done: (index, isRead) => {
      read[index] = isRead
    },
  })
  assert.deepEqual(read, [true, false, false, false])
})

test('tables are kept through no link, and taken from nobody else', async (context) => {
  const folder = makeTestFolder(context)
  const cacheFolder = join(folder, 'cache')
  writeSamples(join(folder, 'data'), 3, () => 10)
  await indexSamples(join(folder, 'data'), { cacheFolder })
  const [name] = readdirSync(cacheFolder)
  const kept = join(cacheFolder, name!)
  assert.equal((await indexSamples(join(folder, 'data'), { cacheFolder })).isCached, true)
  renameSync(kept, join(folder, 'elsewhere'))
  symlinkSync(join(folder, 'elsewhere'), kept)
  assert.equal((await indexSamples(join(folder, 'data'), { cacheFolder })).isCached, false)
  assert.ok(lstatSync(kept).isFile(), 'the link was replaced')
  if (process.getuid?.() !== 0) return
  chownSync(kept, 64_003, 64_003)
  assert.equal((await indexSamples(join(folder, 'data'), { cacheFolder })).isCached, false)
})

test('a folder whose table cannot be kept is indexed all the same', async (context) => {
  const folder = makeTestFolder(context)
  writeSamples(join(folder, 'data'), 3, () => 10)
  writeFileSync(join(folder, 'file'), '')
  const { table } = await indexSamples(join(folder, 'data'), { cacheFolder: join(folder, 'file', 'cache') })
  assert.equal(table.count, 3)
})

test('files without a sample are an error that names the first of them', async (context) => {
  const root = makeTestFolder(context)
  writeFileSync(join(root, 'a.csv'), 'name,age\n')
  await assert.rejects(indexSamples(root, { cacheFolder: undefined }), (error) => {
    return isDscError(error, 'SOURCE_EMPTY') && /look at the first file: a\.csv/.test(error.hint ?? '')
  })
})

for (const closed of ['sub', 'sub/b'])
  test(`a folder in which ${closed} is closed to the caller is refused by its path`, async (context) => {
    const root = makeTestFolder(context)
    chmodSync(root, 0o755)
    mkdirSync(join(root, 'sub'))
    writeFileSync(join(root, 'sub/b'), 'b')
    chmodSync(join(root, closed), 0o000)
    const own = process.geteuid!()
    if (own === 0) process.seteuid!(65534) // root can read everything
    try {
      await assert.rejects(indexSamples(root, { cacheFolder: undefined }), {
        code: 'SOURCE_DENIED',
        message: `${realpathSync(root)}/${closed}: no permission to read (EACCES)`,
      })
    } finally {
      if (own === 0) process.seteuid!(0)
      chmodSync(join(root, closed), 0o700)
    }
  })
