import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import {
  appendFileSync,
  closeSync,
  mkdirSync,
  openSync,
  readFileSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { crc32 } from 'node:zlib'
import { needs } from '../testing/needs.js'
import { makeTestFolder, namesOf, sampleBytes, writeSamples } from '../testing/sample-folder.js'
import { explainLeftOut, indexSamples } from './index-samples.js'
import { SampleReader } from './read-samples.js'
import { formatsOf } from './sample-encoding.js'
import { openSampleTable } from './sample-table.js'

test('files become samples in the byte order of their paths, with lengths and checksums', async (context) => {
  const root = makeTestFolder(context)
  mkdirSync(join(root, 'b'))
  writeFileSync(join(root, 'b', 'x.png'), 'xx')
  writeFileSync(join(root, 'a.png'), 'a')
  writeFileSync(join(root, 'empty'), '')
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
  assert.equal(formatsOf(pairs.table.encodings), 'tar')
  assert.deepEqual([0, 1, 2].map(pairs.table.nameOf), ['s1', 's2', long])

  tar('singles', 'pax', ['s1.jpg', 's2.jpg', `${long}.jpg`])
  const singles = await indexSamples(join(folder, 'singles'), { cacheFolder })
  assert.equal(formatsOf(singles.table.encodings), 'member')
  const reader = new SampleReader(singles.root, singles.table)
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

test('a table of another version is refused instead of misread; the layout is pinned: change DSCSAMP3 with it', async (context) => {
  const root = makeTestFolder(context)
  writeFileSync(join(root, 'a'), 'abc')
  const { table } = await indexSamples(root, { cacheFolder: makeTestFolder(context) })
  assert.equal(Buffer.from(table.bytes.slice(0, 8)).toString(), 'DSCSAMP3')
  assert.equal(table.bytes.length, 128 + 28 + 20 + 1 + 1 + '[{"format":"file"}]'.length)
  const damaged = table.bytes.slice()
  damaged[7] = 0x31
  assert.throws(() => openSampleTable(damaged), { code: 'FEED_PROTOCOL' })
})

test('a folder without files is refused by name', async (context) => {
  await assert.rejects(indexSamples(makeTestFolder(context), { cacheFolder: '/nonexistent' }), {
    code: 'SOURCE_EMPTY',
  })
})

/** Writes a shard of `count` samples of one member each with the system's tar. */
function writeShard(context: TestContext, count: number, ...tarOptions: string[]): string {
  const folder = makeTestFolder(context)
  mkdirSync(join(folder, 'in'))
  mkdirSync(join(folder, 'shards'))
  const names = Array.from({ length: count }, (_, i) => `${String(i).padStart(4, '0')}.bin`)
  for (const name of names) writeFileSync(join(folder, 'in', name), `the bytes of ${name}`.repeat(40))
  const shard = join(folder, 'shards', '0.tar')
  execFileSync('tar', [...tarOptions, '-C', join(folder, 'in'), '-cf', shard, ...names])
  return shard
}

for (const { name, damage, message } of [
  {
    name: 'ends inside a member',
    damage: (shard: string) => truncateSync(shard, 20 * 1536 + 700),
    message: /0\.tar is damaged at byte 30720: the archive ends inside this member/,
  },
  {
    name: 'ends between two members',
    damage: (shard: string) => truncateSync(shard, 20 * 1536),
    message: /0\.tar is damaged at byte 30720: the archive ends here without its end/,
  },
  {
    name: 'has a damaged header',
    damage: (shard: string) => overwrite(shard, 20 * 1536 + 5, Buffer.from('?')),
    message: /0\.tar is damaged at byte 30720: no header/,
  },
  {
    name: 'has a header that was overwritten with zeros',
    damage: (shard: string) => overwrite(shard, 20 * 1536, Buffer.alloc(512)),
    message: /0\.tar is damaged at byte 30720: the archive ends here, but more follows/,
  },
]) {
  test(`a shard that ${name} is an error with its name and the byte, or fed up to there`, async (context) => {
    const shard = writeShard(context, 30)
    damage(shard)
    const root = dirname(shard)
    await assert.rejects(namesOf(context, root), { code: 'COPY_DAMAGED', message })
    const { names, leftOut } = await namesOf(context, root, { onDamage: 'skip' })
    assert.equal(names.length, 19, 'what comes before; the last one may go on in the damage')
    assert.equal(leftOut.length, 1)
    assert.match(leftOut[0]!.reason, /byte 30720/)
  })
}

function overwrite(path: string, at: number, bytes: Buffer): void {
  const fd = openSync(path, 'r+')
  writeSync(fd, bytes, 0, bytes.length, at)
  closeSync(fd)
}

for (const [program, ...options] of [
  ['tar', '--format=ustar'],
  ['tar', '--format=gnu'],
  ['tar', '--format=pax'],
  ['bsdtar', '--format=ustar'],
  ['bsdtar', '--format=pax'],
]) {
  test(`names, lengths and bytes of ${program} ${options.join(' ')} are right`, {
    skip: program === 'bsdtar' && needs('bsdtar', 'libarchive-tools'),
  }, async (context) => {
    const folder = makeTestFolder(context)
    const names = ['a.jpg', `b${'b'.repeat(60)}/${'c'.repeat(70)}.jpg`, 'zé.jpg']
    mkdirSync(join(folder, 'shards'))
    for (const name of names) {
      mkdirSync(dirname(join(folder, 'in', name)), { recursive: true })
      writeFileSync(join(folder, 'in', name), `bytes of ${name}`)
    }
    const shard = join(folder, 'shards', '0.tar')
    execFileSync(program!, [...options, '-C', join(folder, 'in'), '-cf', shard, ...names])
    const listed = await namesOf(context, dirname(shard))
    assert.deepEqual(listed.names, names)
    assert.deepEqual(
      [...listed.table.crcs],
      names.map((name) => crc32(`bytes of ${name}`)),
    )
  })
}

test('the size of a pax header, and one in base-256, are those of the member', async (context) => {
  const shard = writeShard(context, 2, '--format=ustar')
  const bytes = readFileSync(shard)
  const [first, second] = [bytes.subarray(0, 1536), bytes.subarray(1536, 3072)]
  const length = Number.parseInt(first.subarray(124, 135).toString(), 8)
  const record = `12 size=${length}\n`
  assert.equal(record.length, 12)
  const pax = Buffer.alloc(1024)
  first.copy(pax, 0, 0, 512)
  pax.write('00000000014', 124)
  pax[156] = 'x'.charCodeAt(0)
  pax.write(record, 512)
  first.write('00000000001', 124) // the value that fits into the field is too small
  second.fill(0, 124, 136)
  second[124] = 0x80
  second.writeUInt32BE(length, 132)
  for (const header of [pax, first, second]) seal(header)
  writeFileSync(shard, Buffer.concat([pax, first, second, Buffer.alloc(1024)]))
  const { table, names } = await namesOf(context, dirname(shard))
  assert.deepEqual(names, ['0000.bin', '0001.bin'])
  assert.deepEqual([...table.lengths], [length, length])
})

/** Gives a header its checksum. */
function seal(header: Buffer): void {
  header.fill(0x20, 148, 156)
  const sum = header.subarray(0, 512).reduce((total, byte) => total + byte, 0)
  header.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148)
}

for (const format of ['gnu', 'pax']) {
  test(`a sparse member of ${format} is fed as the slice of its shard, which tar can read`, async (context) => {
    const folder = makeTestFolder(context)
    mkdirSync(join(folder, 'shards'))
    writeFileSync(join(folder, 'a.bin'), 'a')
    truncateSync(join(folder, 'a.bin'), 3_000_000)
    appendFileSync(join(folder, 'a.bin'), 'z')
    writeFileSync(join(folder, 'b.bin'), 'b')
    const shard = join(folder, 'shards', '0.tar')
    execFileSync('tar', [`--format=${format}`, '--sparse', '-C', folder, '-cf', shard, 'a.bin', 'b.bin'])
    const { table, names, root } = await namesOf(context, dirname(shard))
    assert.deepEqual([formatsOf(table.encodings), ...names], ['tar', 'a', 'b'])
    assert.ok(table.lengths[0]! < 100_000)
    const slice = Buffer.alloc(table.lengths[0]!)
    const reader = new SampleReader(root, table)
    reader.readAll(Uint32Array.of(0), { place: () => slice, done: (_, isRead) => assert.ok(isRead) })
    reader.close()
    const whole = execFileSync('tar', ['-xOf', '-'], {
      input: Buffer.concat([slice, Buffer.alloc(2048)]),
      maxBuffer: 2 ** 23,
    })
    assert.deepEqual(whole, readFileSync(join(folder, 'a.bin')))
  })
}

test('members of any length, across what is read at once, have their places and checksums', async (context) => {
  const folder = makeTestFolder(context)
  const lengths = [0, 1, 700_000, 1 << 20, 5, (1 << 20) - 512, 3_300_001, 511, 512, 513, 999_999]
  writeSamples(join(folder, 'files'), lengths.length, (id) => lengths[id]!)
  const names = lengths.map((_, id) => `${String(id).padStart(6, '0')}.bin`)
  mkdirSync(join(folder, 'shards'))
  execFileSync('tar', ['-cf', join(folder, 'shards', '0.tar'), '-C', join(folder, 'files'), ...names])
  const { table } = await namesOf(context, join(folder, 'shards'))
  assert.deepEqual([...table.lengths], lengths)
  assert.deepEqual(
    [...table.crcs],
    lengths.map((length, id) => crc32(sampleBytes(id, length))),
  )
})

test('beside tar shards other files are left out, and told', async (context) => {
  const shard = writeShard(context, 3)
  for (const name of ['README.md', '.DS_Store', '0_stats.json'])
    writeFileSync(join(dirname(shard), name), '{}')
  const { names, leftOut, table } = await namesOf(context, dirname(shard))
  assert.deepEqual([formatsOf(table.encodings), ...names], ['member', '0000.bin', '0001.bin', '0002.bin'])
  assert.deepEqual(leftOut.map(({ path }) => path).sort(), ['.DS_Store', '0_stats.json', 'README.md'])
  assert.match(explainLeftOut(leftOut)!, /^dsc: 3 not fed: /)
})
