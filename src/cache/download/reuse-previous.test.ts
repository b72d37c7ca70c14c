import assert from 'node:assert/strict'
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { manifestPath } from '../../manifest/manifest-path.js'
import type { Dataset } from '../../model/dataset.js'
import { type MemorySource, openMemorySource } from '../../testing/memory-source.js'
import { verifyCopy } from '../upkeep/verify-copy.js'
import { downloadFiles } from './download-files.js'
import { listIntoManifest } from './list-into-manifest.js'
import { publishCopy } from './publish-copy.js'

const signal = new AbortController().signal
const root = mkdtempSync(join(tmpdir(), 'dsc-reuse-'))
after(() => rmSync(root, { recursive: true, force: true }))
let paths = 0
const makePath = () => join(root, `${++paths}`)
const dataset: Dataset = { name: 'd', source: 'memory:/', include: [], exclude: [] }

async function stage(source: MemorySource, previousCopyDirectory?: string) {
  const [copyDirectory, finalDirectory] = [makePath(), makePath()]
  await listIntoManifest({ source, dataset, copyDirectory, signal })
  const downloaded = await downloadFiles({
    source,
    copyDirectory,
    reusableDirectories: previousCopyDirectory === undefined ? [] : [previousCopyDirectory],
    signal,
  })
  await publishCopy({ root: '/', copyDirectory, finalDirectory })
  return { downloaded, finalDirectory, files: join(finalDirectory, 'files') }
}

async function assertUndamaged(copyDirectory: string) {
  assert.deepEqual((await verifyCopy({ copyDirectory, signal })).damages, [])
}

/** Writes to a read-only file of a copy in place. */
function spoil(path: string, text: string) {
  chmodSync(path, 0o644)
  writeFileSync(path, text)
  chmodSync(path, 0o444)
}

test('a file of the previous copy that was written since it was published is fetched again', async () => {
  const source = openMemorySource({ a: 'alpha', b: 'beta', c: 'gamma' })
  const first = await stage(source)
  spoil(join(first.files, 'a'), 'AlphA')
  const second = await stage(source, first.finalDirectory)
  assert.deepEqual([second.downloaded.fetchedBytes, second.downloaded.reusedFiles], [5, 2])
  await assertUndamaged(second.finalDirectory)
  assert.equal(readFileSync(join(first.files, 'a'), 'utf8'), 'AlphA', 'the previous copy is not touched')
})

test('a file of the previous copy that is newer but right is reused after it was read', async () => {
  const source = openMemorySource({ a: 'alpha', b: 'beta' })
  const first = await stage(source)
  const future = Date.now() / 1000 + 60
  utimesSync(join(first.files, 'a'), future, future)
  const second = await stage(source, first.finalDirectory)
  assert.deepEqual([second.downloaded.fetchedBytes, second.downloaded.reusedFiles], [0, 2])
  await assertUndamaged(second.finalDirectory)
})

test("files of an adopted folder are read and copied, never linked: they are still their owner's", async () => {
  const source = openMemorySource({ a: 'alpha', b: 'beta' })
  const first = await stage(source)
  const folder = makePath()
  renameSync(first.files, folder)
  symlinkSync(folder, first.files)
  // As if it was already wrong when it was adopted: older than the manifest.
  const past = lstatSync(manifestPath(first.finalDirectory)).mtimeMs / 1000 - 60
  spoil(join(folder, 'b'), 'BETA')
  chmodSync(join(folder, 'a'), 0o664)
  for (const name of ['a', 'b']) utimesSync(join(folder, name), past, past)
  const second = await stage(source, first.finalDirectory)
  assert.deepEqual([second.downloaded.fetchedBytes, second.downloaded.reusedFiles], [4, 1])
  const [mine, theirs] = [statSync(join(second.files, 'a')), statSync(join(folder, 'a'))]
  assert.notEqual(mine.ino, theirs.ino)
  assert.deepEqual([mine.mode & 0o777, theirs.mode & 0o777], [0o444, 0o664])
  writeFileSync(join(folder, 'a'), 'ALPHA')
  await assertUndamaged(second.finalDirectory)
})

test('a previous copy whose manifest cannot be read is left alone', async () => {
  const source = openMemorySource({ a: 'alpha' })
  const first = await stage(source)
  spoil(manifestPath(first.finalDirectory), 'not a database, but long enough to be taken for one'.repeat(50))
  const second = await stage(source, first.finalDirectory)
  assert.deepEqual([second.downloaded.fetchedBytes, second.downloaded.reusedFiles], [5, 0])
  await assertUndamaged(second.finalDirectory)
})

test('a run that is stopped while it checks a file of an adopted folder leaves nothing that counts', async () => {
  const [right, wrong] = [Buffer.alloc(8 * 1024 * 1024, 1), Buffer.alloc(8 * 1024 * 1024, 2)]
  const source = openMemorySource({ a: right })
  const first = await stage(source)
  const folder = makePath()
  renameSync(first.files, folder)
  symlinkSync(folder, first.files)
  chmodSync(join(folder, 'a'), 0o644)
  writeFileSync(join(folder, 'a'), wrong)
  const copyDirectory = makePath()
  await listIntoManifest({ source, dataset, copyDirectory, signal })
  const stop = new AbortController()
  const options = { source, copyDirectory, reusableDirectories: [first.finalDirectory] }
  const stopped = downloadFiles({ ...options, signal: stop.signal })
  const begun = ['files/a', 'stale/unchecked'].map((path) => join(copyDirectory, path))
  while (!begun.some((path) => existsSync(path))) await new Promise(setImmediate)
  stop.abort()
  await assert.rejects(stopped, { code: 'INTERRUPTED' })
  const finalDirectory = makePath()
  assert.equal((await downloadFiles({ ...options, signal })).fetchedBytes, right.length)
  await publishCopy({ root: '/', copyDirectory, finalDirectory })
  assert.ok(readFileSync(join(finalDirectory, 'files/a')).equals(right))
  assert.deepEqual(readdirSync(finalDirectory).sort(), readdirSync(first.finalDirectory).sort())
})
