import assert from 'node:assert/strict'
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import fc from 'fast-check'
import { isDscError } from '../../failure/dsc-error.js'
import { readAllSamples } from '../../testing/read-all-samples.js'
import { makeTestFolder } from '../../testing/sample-folder.js'
import { type IndexOptions, indexSamples } from '../index-samples.js'

/** Files written by scripts/make-format-fixtures.py with the formats' own libraries: 20 rows each. */
const FIXTURES = join(import.meta.dirname, '..', '..', '..', 'fixtures', 'formats')

const FORMATS = [
  { format: 'mds', shard: 'shard.00001.mds', rows: 6 },
  { format: 'litdata', shard: 'chunk-0-1.bin', rows: 7 },
] as const

function copyFixture(context: TestContext, format: string): string {
  const folder = join(makeTestFolder(context), format)
  cpSync(join(FIXTURES, format), folder, { recursive: true })
  return folder
}

const list = (folder: string, options: Partial<IndexOptions> = {}) =>
  indexSamples(folder, { cacheFolder: undefined, ...options })

for (const { format, shard } of FORMATS) {
  test(`rows of ${format} are samples, named by their shard, with what reading them takes`, async () => {
    const listed = await list(join(FIXTURES, format))
    const { table } = listed
    assert.equal(table.count, 20)
    assert.deepEqual([table.encodings.length, table.encodings[0]!.format], [1, format])
    assert.match(table.nameOf(0), /^(shard\.00000\.mds|chunk-0-0\.bin):0$/)
    const bytes = readFileSync(join(FIXTURES, format, shard))
    const first = Array.from({ length: 20 }, (_, i) => i).find((i) => table.nameOf(i) === `${shard}:0`)!
    assert.deepEqual(
      readAllSamples(listed)[first]!,
      bytes.subarray(bytes.readUInt32LE(4), bytes.readUInt32LE(8)),
    )
    assert.deepEqual(
      listed.leftOut.map(({ path }) => path),
      ['index.json'],
    )
  })

  test(`whatever the header of a shard of ${format} says, it is read or refused by name`, async (context) => {
    const folder = copyFixture(context, format)
    const path = join(folder, shard)
    const whole = readFileSync(path)
    const change = fc.oneof(
      fc.record({ at: fc.nat(whole.length - 1), byte: fc.nat(255) }),
      fc.record({ at: fc.nat(40), byte: fc.nat(255) }),
    )
    await fc.assert(
      fc.asyncProperty(
        fc.array(change, { maxLength: 4 }),
        fc.oneof(fc.constant(whole.length), fc.nat(whole.length)),
        async (changes, length) => {
          const bytes = Buffer.from(whole)
          for (const { at, byte } of changes) bytes[at] = byte
          writeFileSync(path, bytes.subarray(0, length))
          await readOrRefuse(folder)
        },
      ),
      { numRuns: 300 },
    )
  })

  test(`whatever the index.json of ${format} says, it is read or refused by name`, async (context) => {
    const folder = copyFixture(context, format)
    const path = join(folder, 'index.json')
    const whole = readFileSync(path).toString()
    const replaced = fc.tuple(fc.nat(whole.length), fc.nat(30), fc.jsonValue({ maxDepth: 1 }))
    await fc.assert(
      fc.asyncProperty(fc.oneof(replaced, fc.jsonValue({ maxDepth: 2 })), async (change) => {
        const text =
          Array.isArray(change) && typeof change[0] === 'number' && change.length === 3
            ? whole.slice(0, change[0]) +
              JSON.stringify(change[2]) +
              whole.slice(change[0] + Number(change[1]))
            : JSON.stringify(change)
        writeFileSync(path, text)
        await readOrRefuse(folder)
      }),
      { numRuns: 200 },
    )
  })

  test(`a damaged shard of ${format} is an error with its byte, or left out`, async (context) => {
    const folder = copyFixture(context, format)
    const path = join(folder, shard)
    const bytes = readFileSync(path)
    bytes.writeUInt32LE(2 ** 31, 8)
    writeFileSync(path, bytes)
    await assert.rejects(
      list(folder),
      (error) =>
        isDscError(error, 'COPY_DAMAGED') && error.message.startsWith(`${shard} is damaged at byte 8: `),
    )
    const { table, leftOut } = await list(folder, { onDamage: 'skip' })
    assert.ok(table.count > 0 && table.count < 20)
    assert.ok(leftOut.some((each) => each.path === shard))
  })

  test(`a shard of ${format} with fewer samples than index.json says is refused`, async (context) => {
    const folder = copyFixture(context, format)
    const index = readFileSync(join(folder, 'index.json')).toString()
    writeFileSync(join(folder, 'index.json'), index.replace(/"(samples|chunk_size)": 6/, '"$1": 5'))
    await assert.rejects(list(folder), { code: 'COPY_DAMAGED', message: /5 by index/ })
  })
}

async function readOrRefuse(folder: string): Promise<void> {
  try {
    const listed = await list(folder)
    assert.equal(readAllSamples(listed).length, listed.table.count)
  } catch (error) {
    const isNamed =
      isDscError(error, 'COPY_DAMAGED') || isDscError(error, 'USAGE') || isDscError(error, 'SOURCE_EMPTY')
    assert.ok(isNamed, `${(error as Error).stack}`)
  }
}

test('shards of MDS describe themselves: a node with some of them and no index.json reads those', async (context) => {
  const folder = copyFixture(context, 'mds')
  rmSync(join(folder, 'index.json'))
  rmSync(join(folder, 'shard.00000.mds'))
  const { table } = await list(folder)
  const whole = await list(join(FIXTURES, 'mds'))
  assert.deepEqual(table.encodings, whole.table.encodings)
  assert.equal(table.nameOf(0), 'shard.00001.mds:0')
})

for (const { name, change, message } of [
  { name: 'compressed', change: { compression: 'zstd' }, message: /are compressed \(zstd\)/ },
  { name: 'encrypted', change: { encryption: { algorithm: 'fernet' } }, message: /are encrypted/ },
  { name: 'of tokens', change: { item_loader: 'TokensLoader' }, message: /are for TokensLoader/ },
]) {
  test(`chunks of LitData that are ${name} are refused by name`, async (context) => {
    const folder = copyFixture(context, 'litdata')
    const index = JSON.parse(readFileSync(join(folder, 'index.json')).toString())
    Object.assign(index.config, change)
    writeFileSync(join(folder, 'index.json'), JSON.stringify(index))
    await assert.rejects(list(folder), { code: 'USAGE', message })
  })
}

test('files that are called as chunks of LitData are files where no index.json is beside them', async (context) => {
  const folder = makeTestFolder(context)
  mkdirSync(join(folder, 'a'))
  writeFileSync(join(folder, 'a', 'chunk-0-0.bin'), 'x')
  assert.deepEqual((await list(folder)).table.encodings, [{ format: 'file' }])
})

test('samples longer than what is read at once have the checksum of all of their bytes', async (context) => {
  const folder = copyFixture(context, 'mds')
  const shard = readFileSync(join(folder, 'shard.00000.mds'))
  const count = shard.readUInt32LE(0)
  const config = shard.subarray(4 * (count + 2), shard.readUInt32LE(4))
  const samples = [5 << 20, 3, 4 << 20, (4 << 20) + 1, 0, 9 << 20].map((length, i) =>
    Buffer.alloc(length, i + 1),
  )
  const head = Buffer.alloc(4 * (samples.length + 2))
  head.writeUInt32LE(samples.length, 0)
  let at = head.length + config.length
  for (const [i, sample] of [...samples, Buffer.alloc(0)].entries()) {
    head.writeUInt32LE(at, 4 + 4 * i)
    at += sample.length
  }
  rmSync(folder, { recursive: true })
  mkdirSync(folder)
  writeFileSync(join(folder, 'shard.00000.mds'), Buffer.concat([head, config, ...samples]))
  assert.deepEqual(readAllSamples(await list(folder)), samples)
})
