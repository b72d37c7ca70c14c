import assert from 'node:assert/strict'
import { cpSync, existsSync, readFileSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { brotliCompressSync, gzipSync, zstdCompressSync } from 'node:zlib'
import fc from 'fast-check'
import { isDscError } from '../../failure/dsc-error.js'
import { readAllSamples } from '../../testing/read-all-samples.js'
import { rowsOptions } from '../../testing/rows-options.js'
import { makeTestFolder } from '../../testing/sample-folder.js'
import { indexSamples } from '../index-samples.js'

const FIXTURE = join(import.meta.dirname, '..', '..', '..', 'fixtures', 'formats', 'mds')
const SHARDS = ['shard.00000.mds', 'shard.00001.mds', 'shard.00002.mds', 'shard.00003.mds'].filter((name) =>
  existsSync(join(FIXTURE, name)),
)
const WAYS = { zstd: zstdCompressSync, gz: gzipSync, br: brotliCompressSync }

/** Compresses the shards of the fixture the way MDSWriter(compression='zstd') does. */
function compress(context: TestContext, names: readonly string[], end: keyof typeof WAYS = 'zstd') {
  const home = makeTestFolder(context)
  const folder = join(home, 'data')
  cpSync(FIXTURE, folder, { recursive: true })
  for (const name of names) {
    const path = join(folder, name)
    writeFileSync(`${path}.${end}`, WAYS[end](readFileSync(path)))
    rmSync(path)
  }
  const rows = join(home, 'rows')
  // So few rows take less than the index.json beside them, so the type of most bytes does not matter.
  const options = { format: 'mds', cacheFolder: join(home, 'kept'), rows: rowsOptions(rows) } as const
  const list = () => indexSamples(folder, options)
  return { folder, rows, list }
}

for (const end of ['zstd', 'gz', 'br'] as const)
  test(`shards of MDS that are compressed (${end}) are unpacked once, and are the samples of plain ones`, async (context) => {
    const { folder, rows, list } = compress(context, SHARDS, end)
    const plain = await indexSamples(FIXTURE, { cacheFolder: undefined })
    const first = await list()
    assert.equal(first.table.fingerprint, plain.table.fingerprint)
    assert.equal(first.table.nameOf(0), plain.table.nameOf(0))
    assert.deepEqual(readAllSamples(first), readAllSamples(plain))
    const inodeOf = (name: string) => statSync(join(rows, name)).ino
    const inodes = SHARDS.map(inodeOf)
    const again = await list()
    assert.ok(again.isCached)
    assert.deepEqual(readAllSamples(again), readAllSamples(plain))
    utimesSync(join(folder, `${SHARDS[0]}.${end}`), 1, 1)
    await list()
    assert.notEqual(inodeOf(SHARDS[0]!), inodes[0])
    assert.deepEqual(SHARDS.slice(1).map(inodeOf), inodes.slice(1))
  })

test('plain shards beside compressed ones are read where they lie, and one that is there twice counts once', async (context) => {
  const { folder, list } = compress(context, SHARDS.slice(1))
  writeFileSync(join(folder, `${SHARDS[0]}.zstd`), 'kept beside it')
  const plain = await indexSamples(FIXTURE, { cacheFolder: undefined })
  const { table } = await list()
  assert.equal(table.fingerprint, plain.table.fingerprint)
})

test('a compressed shard that is damaged is named', async (context) => {
  const { folder, list } = compress(context, SHARDS)
  const path = join(folder, `${SHARDS[1]}.zstd`)
  const whole = readFileSync(path)
  const change = fc.record({ at: fc.nat(whole.length - 1), byte: fc.nat(255), length: fc.nat(whole.length) })
  await fc.assert(
    fc.asyncProperty(change, async ({ at, byte, length }) => {
      const bytes = Buffer.from(whole)
      bytes[at] = byte
      writeFileSync(path, at % 2 === 0 ? bytes : bytes.subarray(0, length))
      try {
        const listed = await list()
        assert.equal(readAllSamples(listed).length, listed.table.count)
      } catch (error) {
        assert.ok(isDscError(error, 'COPY_DAMAGED'), (error as Error).stack)
        assert.match(error.message, /shard\.00001\.mds/)
      }
    }),
    { numRuns: 60 },
  )
})
