import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { makeTestFolder, sampleBytes } from '../testing/sample-folder.js'
import type { ShardMembers } from './formats/index-shards.js'
import { indexSamples } from './index-samples.js'
import { digestListing, listShardSamples } from './listed-samples.js'
import { readShardMembers } from './read-shard-members.js'
import type { SampleTable } from './sample-table.js'

/** Writes a folder of three shards whose members have about `bytes` each, in one or two files per key. */
function writeShards(
  context: TestContext,
  { bytes, format, extensions }: { bytes: number; format: string; extensions: readonly string[] },
): string {
  const folder = makeTestFolder(context)
  const shards = join(folder, 'shards')
  mkdirSync(shards)
  mkdirSync(join(folder, 'in'))
  for (let shard = 0; shard < 3; shard++) {
    const names: string[] = []
    for (let i = 0; i < 20; i++)
      for (const extension of extensions) {
        const name = `${shard}${i === 7 ? 'n'.repeat(150) : ''}-${i}.${extension}`
        writeFileSync(join(folder, 'in', name), sampleBytes(i, bytes + 37 * i))
        names.push(name)
      }
    const words = [`--format=${format}`, '-C', join(folder, 'in'), '-cf', join(shards, `${shard}.tar`)]
    execFileSync('tar', [...words, ...names])
  }
  return shards
}

/** Reads the members of all shards of a folder by ranges. */
async function readAll(folder: string) {
  let readBytes = 0
  const shards = readdirSync(folder).map((path) => ({ path, bytes: readFileSync(join(folder, path)) }))
  const contents: (ShardMembers | undefined)[] = []
  for (const { bytes } of shards) {
    const read = async (offset: number, length: number) => {
      assert.ok(offset + length <= bytes.length, 'no range leads out of the shard')
      readBytes += length
      return bytes.subarray(offset, offset + length)
    }
    contents.push(await readShardMembers(bytes.length, read))
  }
  const files = shards.map(({ path, bytes }) => ({ path, size: bytes.length }))
  return { files, contents, readBytes, totalBytes: files.reduce((sum, { size }) => sum + size, 0) }
}

const rowsOf = (table: SampleTable) =>
  Array.from({ length: table.count }, (_, sample) => [
    table.nameOf(sample),
    table.files[sample],
    table.offsets[sample],
    table.lengths[sample],
  ])

for (const format of ['gnu', 'pax'])
  for (const extensions of [['bin'], ['jpg', 'cls']])
    test(`headers of ${format} tell of ${extensions.join(' and ')} what the whole shards do`, async (context) => {
      const folder = writeShards(context, { bytes: 70_000, format, extensions })
      const { files, contents, readBytes, totalBytes } = await readAll(folder)
      const { table } = listShardSamples(files, contents as ShardMembers[], { onDamage: 'raise' })
      const found = await indexSamples(folder, { cacheFolder: undefined })
      assert.deepEqual([table.encodings, rowsOf(table)], [found.table.encodings, rowsOf(found.table)])
      assert.equal(digestListing(table, 'v'), digestListing(found.table, 'v'))
      assert.ok(readBytes < totalBytes / 10, `${readBytes} of ${totalBytes} bytes were read`)
    })

test('of a shard with small members little is read before it is left', async (context) => {
  const folder = writeShards(context, { bytes: 3000, format: 'gnu', extensions: ['bin'] })
  const { contents, readBytes, totalBytes } = await readAll(folder)
  assert.deepEqual(contents, [undefined, undefined, undefined])
  assert.ok(readBytes < totalBytes / 2)
})

for (const { name, damage } of [
  { name: 'cut off', damage: (bytes: Buffer) => bytes.subarray(0, 800_000) },
  { name: 'overwritten', damage: (bytes: Buffer) => bytes.fill(0x41, 700_000, 900_000) },
  { name: 'with a hole of zeros', damage: (bytes: Buffer) => bytes.fill(0, 700_000, 900_000) },
])
  test(`a shard that is ${name} is told of by its headers as by its bytes`, async (context) => {
    const folder = writeShards(context, { bytes: 70_000, format: 'gnu', extensions: ['bin'] })
    const path = join(folder, '1.tar')
    writeFileSync(path, damage(readFileSync(path)))
    const { files, contents } = await readAll(folder)
    const members = contents as ShardMembers[]
    const listed = listShardSamples(files, members, { onDamage: 'skip' })
    const found = await indexSamples(folder, { cacheFolder: undefined, onDamage: 'skip' })
    assert.deepEqual(rowsOf(listed.table), rowsOf(found.table))
    assert.deepEqual(listed.leftOut, found.leftOut)
    assert.equal(listed.leftOut.length, 1)
    assert.throws(() => listShardSamples(files, members, { onDamage: 'raise' }), { code: 'COPY_DAMAGED' })
  })
