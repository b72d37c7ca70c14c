import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { crc32 } from 'node:zlib'
import { isDscError } from '../../failure/dsc-error.js'
import { copyParquet, PARQUET_FIXTURES, runningOnParquet } from '../../testing/parquet-files.js'
import { temporaryDirectory } from '../../testing/temporary-directory.js'
import { waitFor } from '../../testing/world.js'
import { fromText } from '../byte-path.js'
import { listFolder } from '../list-folder.js'
import { readRow } from './read-row.js'
import { formatRowsIndex, readRowsIndex } from './rows-index.js'
import { RowsThread } from './rows-threads.js'
import { type UnpackRequest, unpackRows } from './unpack-rows.js'

const ROWS = 24

async function folders(t: TestContext) {
  const root = await temporaryDirectory(t)
  return { root, folder: join(await temporaryDirectory(t), 'rows') }
}

/** Unpacks, and records the requests for room. */
async function unpack(root: string, folder: string, changes: Partial<UnpackRequest> = {}) {
  const files = (await listFolder(root, 'follow')).files.list()
  const asked: number[] = []
  const request: UnpackRequest = {
    root: fromText(root),
    files,
    columns: undefined,
    kept: 'rows',
    folder,
    makeRoom: async (bytes) => void asked.push(bytes),
    settle: async () => {},
    ...changes,
  }
  return { indexes: await unpackRows(request), asked, files }
}

/** Returns the texts of all rows of a file, from its rows on the disk. */
function textsOf(folder: string, path: string, lengths: Uint32Array, crcs: Uint32Array): unknown[] {
  const bytes = readFileSync(join(folder, `${path}.rows`))
  let at = 0
  return Array.from(lengths, (length, row) => {
    const part = bytes.subarray(at, at + length)
    at += length
    assert.equal(crc32(part), crcs[row])
    return readRow(part).text
  })
}

const TEXTS = (
  JSON.parse(readFileSync(join(PARQUET_FIXTURES, 'rows.json'), 'utf8'))['brotli.parquet'] as {
    text: unknown
  }[]
).map(({ text }) => text)

test('rows lie side by side behind their index, and are written once', async (t) => {
  const { root, folder } = await folders(t)
  copyParquet(root, {
    'data/a.parquet': 'snappy.parquet',
    'data/b.parquet': 'groups.parquet',
    'none.parquet': 'no-rows.parquet',
  })
  const first = await unpack(root, folder)
  assert.deepEqual(
    first.indexes.map(({ lengths }) => lengths.length),
    [ROWS, ROWS, 0],
  )
  for (const [i, path] of ['data/a.parquet', 'data/b.parquet'].entries()) {
    const { lengths, crcs, rowsBytes } = first.indexes[i]!
    assert.deepEqual(textsOf(folder, path, lengths, crcs), TEXTS)
    assert.ok(rowsBytes <= first.asked[0]!, 'less room was asked for than rows take')
  }
  assert.equal(first.asked.length, 1)
  const again = await unpack(root, folder)
  assert.deepEqual(again, { ...first, asked: [] })
})

test('a file that changed is unpacked anew, alone, and so is one whose rows or index are damaged', async (t) => {
  const { root, folder } = await folders(t)
  copyParquet(root, { 'a.parquet': 'snappy.parquet', 'b.parquet': 'zstd.parquet' })
  await unpack(root, folder)
  const rowsOf = (name: string) => statSync(join(folder, `${name}.parquet.rows`)).ino
  for (const damage of [
    () => utimesSync(join(root, 'a.parquet'), 1, 1),
    () => truncateSync(makeWritable(join(folder, 'a.parquet.rows')), 10),
    () => truncateSync(makeWritable(join(folder, 'a.parquet.index')), 50),
    () => rmSync(join(folder, 'a.parquet.index')),
    () => {
      const path = makeWritable(join(folder, 'a.parquet.index'))
      const bytes = readFileSync(path)
      bytes[60]! ^= 1
      writeFileSync(path, bytes)
    },
  ]) {
    const before = [rowsOf('a'), rowsOf('b')]
    damage()
    const { indexes, asked } = await unpack(root, folder)
    assert.equal(asked.length, 1, String(damage))
    assert.deepEqual(textsOf(folder, 'a.parquet', indexes[0]!.lengths, indexes[0]!.crcs), TEXTS)
    assert.notEqual(rowsOf('a'), before[0])
    assert.equal(rowsOf('b'), before[1])
  }
})

/** Makes an unpacked file writable: they are read-only, so only root could damage it. */
function makeWritable(path: string): string {
  chmodSync(path, 0o600)
  return path
}

test('of two who ask at a time one unpacks', async (t) => {
  const { root, folder } = await folders(t)
  copyParquet(
    root,
    Object.fromEntries(Array.from({ length: 8 }, (_, i) => [`${i}.parquet`, 'groups.parquet'])),
  )
  const both = await Promise.all([unpack(root, folder), unpack(root, folder)])
  assert.deepEqual(both.map(({ asked }) => asked.length).sort(), [0, 1])
  assert.deepEqual(both[0].indexes, both[1].indexes)
  assert.deepEqual(
    readdirSync(folder).filter((name) => name.startsWith('claim')),
    [],
  )
})

test('what a killed process had finished is kept, the rest is unpacked by the next one', async (t) => {
  const { root, folder } = await folders(t)
  const count = 60
  copyParquet(
    root,
    Object.fromEntries(Array.from({ length: count }, (_, i) => [`${i}.parquet`, 'groups.parquet'])),
  )
  const script = fileURLToPath(new URL('../../testing/unpack-child.js', import.meta.url))
  const child = spawn(process.execPath, [script, root, folder, '3'], { stdio: 'inherit' })
  const closed = once(child, 'close')
  t.after(() => child.kill('SIGKILL'))
  await waitFor('three files', () => /^State:\s+T/m.test(readFileSync(`/proc/${child.pid}/status`, 'utf8')))
  child.kill('SIGKILL')
  assert.deepEqual(await closed, [null, 'SIGKILL'])
  const kept = readdirSync(folder).filter((name) => name.endsWith('.index'))
  assert.ok(kept.length >= 3 && kept.length < count, `${kept.length} were finished`)
  const inodes = kept.map((name) => statSync(join(folder, name)).ino)
  const { indexes } = await unpack(root, folder)
  for (const [i, { lengths, crcs }] of indexes.entries())
    assert.deepEqual(
      textsOf(folder, (await listFolder(root, 'follow')).files.list()[i]!.path, lengths, crcs),
      TEXTS,
    )
  assert.deepEqual(
    kept.map((name) => statSync(join(folder, name)).ino),
    inodes,
  )
  assert.deepEqual(readdirSync(join(folder, 'parts')), [])
})

test('where there is no room nothing is written, and the next one tries again', async (t) => {
  const { root, folder } = await folders(t)
  copyParquet(root, { 'a.parquet': 'snappy.parquet' })
  const refusal = new Error('no room')
  await assert.rejects(unpack(root, folder, { makeRoom: () => Promise.reject(refusal) }), refusal)
  assert.deepEqual(readdirSync(folder), ['parts'])
  assert.equal((await unpack(root, folder)).indexes[0]!.lengths.length, ROWS)
})

test('a file that makes its decoder run on is given up by name', async (t) => {
  const { root, folder } = await folders(t)
  copyParquet(root, { 'a.parquet': 'snappy.parquet' })
  await unpack(root, folder)
  writeFileSync(join(root, 'b.parquet'), runningOnParquet())
  await assert.rejects(unpack(root, folder, { patienceMs: 5000 }), {
    code: 'COPY_DAMAGED',
    message: /^b\.parquet is no Parquet file that can be read: column \w+ of row group 0 takes longer/,
  })
})

test('whatever is damaged in a file, reading it ends in a named error or in rows', async (t) => {
  const { root, folder } = await folders(t)
  const path = join(root, 'damaged.parquet')
  const seed = Number(process.env.DSC_TEST_SEED ?? 7)
  t.diagnostic(`DSC_TEST_SEED=${seed}`)
  const random = createRandom(seed)
  let thread = new RowsThread(2000)
  t.after(() => thread.stop())
  const names = readdirSync(PARQUET_FIXTURES).filter((name) => name.endsWith('.parquet'))
  let refused = 0
  for (const name of names) {
    const bytes = readFileSync(join(PARQUET_FIXTURES, name))
    for (let round = 0; round < 16; round++) {
      writeFileSync(path, damage(bytes, round, random))
      const job = {
        kind: 'unpack' as const,
        path: Buffer.from(path),
        shown: name,
        columns: undefined,
        origin: { size: 0, mtimeMs: 0 },
        rows: Buffer.from(join(folder, 'r')),
        index: Buffer.from(join(folder, 'i')),
        part: join(folder, `${name}-${round}`),
      }
      try {
        await thread.run(job)
      } catch (error) {
        // A changed byte may say that columns are encrypted.
        if (/its columns are encrypted$/.test((error as Error).message)) continue
        assert.ok(isDscError(error, 'COPY_DAMAGED'), `${name}, round ${round}: ${(error as Error).stack}`)
        assert.match(error.message, new RegExp(`^${name} is no Parquet file that can be read: `))
        refused += 1
        if (!/takes/.test(error.message)) continue
        await thread.stop()
        thread = new RowsThread(2000)
      }
    }
  }
  assert.ok(refused > names.length * 4, `only ${refused} were refused`)
})

/** Changes up to three bytes, every other time in the footer; every tenth time also cuts off the end. */
function damage(bytes: Buffer, round: number, random: (below: number) => number): Buffer {
  const damaged = Buffer.from(bytes)
  const footerAt = bytes.length - bytes.readUInt32LE(bytes.length - 8) - 8
  const from = round % 2 === 0 ? footerAt : 0
  for (let flips = 1 + random(3); flips > 0; flips--)
    damaged[from + random(bytes.length - from)] = random(256)
  return round % 10 === 9 ? damaged.subarray(0, random(bytes.length)) : damaged
}

/** Returns whole numbers from 0 up to a bound; the same for the same seed. */
function createRandom(seed: number): (below: number) => number {
  let state = seed
  return (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return Math.floor((state / 2 ** 32) * below)
  }
}

test('an index is read as it was pinned; a new format needs another magic number', async (t) => {
  const { folder } = await folders(t)
  const index = { lengths: Uint32Array.of(3, 300), crcs: Uint32Array.of(1, 0xffffffff), rowsBytes: 303 }
  const origin = { size: 4096, mtimeMs: 1.5 }
  const bytes = formatRowsIndex(index, origin)
  assert.equal(
    bytes.toString('hex'),
    '445343524f57533100000000000000400000000000f07240000000000000b040' +
      '000000000000f83f030000002c01000001000000ffffffffbce11cb1',
  )
  const paths = { rows: `${folder}.rows`, index: `${folder}.index` }
  writeFileSync(paths.index, bytes)
  writeFileSync(paths.rows, Buffer.alloc(303))
  assert.deepEqual(readRowsIndex(paths, origin), index)
  assert.equal(readRowsIndex(paths, { ...origin, size: 4095 }), undefined)
})
