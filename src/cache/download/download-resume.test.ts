import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import {
  chmodSync,
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readFileSync,
  readSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { Manifest } from '../../manifest/manifest.js'
import { openFileSource } from '../../sources/file/file-source.js'
import { type SourceBench, startSourceBench } from '../../testing/source-bench.js'
import { finishedIn } from '../../testing/staging-progress.js'
import { waitFor } from '../../testing/world.js'
import { verifyCopy } from '../upkeep/verify-copy.js'
import { downloadFiles } from './download-files.js'
import { listIntoManifest } from './list-into-manifest.js'
import { publishCopy } from './publish-copy.js'

const signal = new AbortController().signal
const MIB = 1024 * 1024
const CHILD = fileURLToPath(new URL('../../testing/stage-child.js', import.meta.url))
let bench: SourceBench
before(async () => {
  bench = await startSourceBench()
})
after(() => bench.close())

function readPage(path: string, offset: number): Buffer {
  const descriptor = openSync(path, 'r')
  const page = Buffer.alloc(4096)
  readSync(descriptor, page, 0, page.length, offset)
  closeSync(descriptor)
  return page
}

test('after kill -9 what went past the page cache is kept up to the last block', async () => {
  const big = randomBytes(40 * MIB)
  const from = await bench.makeSource({ big })
  const copyDirectory = bench.makePath('copy')
  const stalled = [
    { match: 'data/big bytes=33554432-', fault: { kind: 'stall', afterBytes: 3.5 * MIB } as const },
  ]
  bench.proxy.setRules(stalled)
  const { dataset } = from
  const limits = { concurrency: 1, cacheMemoryBytes: 0 }
  const child = spawn(process.execPath, [CHILD, JSON.stringify({ dataset, copyDirectory, ...limits })])
  const ended = once(child, 'exit')
  const path = join(copyDirectory, 'files/big')
  // Reads one page: a longer read would hold up the proxy in this process.
  const isWritten = () => existsSync(path) && readPage(path, 35 * MIB - 4096).some(Boolean)
  await waitFor('three blocks', isWritten)
  await waitFor('the manifest to say so', () => finishedIn(copyDirectory).parts === 2)
  child.kill('SIGKILL')
  assert.deepEqual(await ended, [null, 'SIGKILL'], 'the child was killed in mid-download')
  bench.proxy.setRules([])
  const downloaded = await downloadFiles({ ...from, copyDirectory, cacheMemoryBytes: 0, signal })
  assert.ok(downloaded.fetchedBytes <= 5 * MIB + 4096, `${downloaded.fetchedBytes} bytes came twice or late`)
  assert.ok(readFileSync(path).equals(big))
})

test('after kill -9 nothing that was finished is fetched again', async () => {
  const small = Object.fromEntries(Array.from({ length: 30 }, (_, index) => [`a${index}`, `object ${index}`]))
  const from = await bench.makeSource({ ...small, big: Buffer.alloc(40 * MIB, 3) })
  const copyDirectory = bench.makePath('copy')
  bench.proxy.setRules([{ match: 'data/big bytes=33554432-', fault: { kind: 'stall', afterBytes: 100_000 } }])
  const { dataset } = from
  const child = spawn(process.execPath, [CHILD, JSON.stringify({ dataset, copyDirectory, concurrency: 1 })])
  const ended = once(child, 'exit')
  while (bench.proxy.count(/data\/big bytes=33554432-/) === 0) await sleep(20)
  await waitFor('the manifest to say so', () => {
    const { files, parts } = finishedIn(copyDirectory)
    return files.length === 30 && parts === 2
  })
  child.kill('SIGKILL')
  assert.deepEqual(await ended, [null, 'SIGKILL'], 'the child was killed in mid-download')
  bench.proxy.setRules([])
  bench.proxy.forget()
  await listIntoManifest({ ...from, copyDirectory, signal })
  const downloaded = await downloadFiles({ ...from, copyDirectory, signal })
  const [request, ...others] = bench.proxy.requests.map(({ line }) => line.replace(/\/[^/]+/, ''))
  assert.deepEqual(others, [])
  const [, beginning = 0] = /^GET \/data\/big bytes=(\d+)-41943039$/.exec(request!) ?? []
  const keptBytes = Number(beginning) - 32 * MIB
  assert.ok(keptBytes >= 0 && keptBytes <= 100_000, `${request}: what came of the stalled part is kept`)
  assert.equal(downloaded.fetchedBytes, 8 * MIB - keptBytes)
  const finalDirectory = bench.makePath('final')
  await publishCopy({ root: '/', copyDirectory, finalDirectory })
  assert.deepEqual((await verifyCopy({ copyDirectory: finalDirectory, signal })).damages, [])
})

test('after a reboot finished files are checked, and those that lost bytes are fetched again', async () => {
  const from = await bench.makeSource({ a: 'alpha', b: 'beta', big: Buffer.alloc(40 * MIB, 3), c: 'gamma' })
  const copyDirectory = bench.makePath('copy')
  bench.proxy.setRules([])
  await listIntoManifest({ ...from, copyDirectory, signal })
  await downloadFiles({ ...from, copyDirectory, signal, bootId: 'before' })
  const files = join(copyDirectory, 'files')
  chmodSync(join(files, 'a'), 0o644)
  writeFileSync(join(files, 'a'), Buffer.alloc(5)) // what ext4 leaves of a file that was never synced
  rmSync(join(files, 'b'))
  chmodSync(join(files, 'big'), 0o644)
  writeFileSync(
    join(files, 'big'),
    Buffer.concat([readFileSync(join(files, 'big')).subarray(0, 20 * MIB), Buffer.alloc(20 * MIB)]),
  )
  bench.proxy.forget()
  const same = await downloadFiles({ ...from, copyDirectory, signal, bootId: 'before' })
  assert.equal(same.fetchedBytes, 0, 'within a boot nothing is read again')
  await downloadFiles({ ...from, copyDirectory, signal, bootId: 'after' })
  assert.deepEqual(bench.proxy.requests.map((request) => request.line.replace(/\/[^/]+/, '')).sort(), [
    'GET /data/a',
    'GET /data/b',
    'GET /data/big bytes=16777216-33554431',
    'GET /data/big bytes=33554432-41943039',
  ])
  const finalDirectory = bench.makePath('final')
  await publishCopy({ root: '/', copyDirectory, finalDirectory })
  assert.deepEqual((await verifyCopy({ copyDirectory: finalDirectory, signal })).damages, [])
})

test('a new version fetches only what changed and leaves the old one as it is', async () => {
  const big = Buffer.alloc(40 * MIB, 3)
  const from = await bench.makeSource({ same: 'same', changed: 'old', gone: 'gone', big })
  bench.proxy.setRules([])
  const stage = async (previousCopyDirectory?: string) => {
    const copyDirectory = bench.makePath('copy')
    const listing = await listIntoManifest({ ...from, copyDirectory, signal })
    const downloaded = await downloadFiles({
      ...from,
      copyDirectory,
      reusableDirectories: previousCopyDirectory === undefined ? [] : [previousCopyDirectory],
      signal,
    })
    const finalDirectory = bench.makePath('final')
    await publishCopy({ root: '/', copyDirectory, finalDirectory })
    return { listing, downloaded, finalDirectory }
  }
  const first = await stage()
  await bench.server.putObject(from.bucket, 'data/changed', 'new')
  await bench.server.deleteObject(from.bucket, 'data/gone')
  await bench.server.putObject(from.bucket, 'data/added', 'added')
  bench.proxy.forget()
  const second = await stage(first.finalDirectory)
  assert.notEqual(second.listing.version, first.listing.version)
  assert.equal(bench.proxy.count(/GET .*\/data\/(changed|added)$/), 2)
  assert.equal(bench.proxy.count(/\/data\/./), 2)
  const { reusedFiles, reusedBytes, fetchedBytes } = second.downloaded
  assert.deepEqual(
    { reusedFiles, reusedBytes, fetchedBytes },
    { reusedFiles: 2, reusedBytes: big.length + 4, fetchedBytes: 8 },
  )
  for (const { finalDirectory } of [first, second])
    assert.deepEqual((await verifyCopy({ copyDirectory: finalDirectory, signal })).damages, [])
  assert.equal(readFileSync(join(first.finalDirectory, 'files/changed'), 'utf8'), 'old')
  assert.equal(readFileSync(join(second.finalDirectory, 'files/changed'), 'utf8'), 'new')
  assert.equal(statSync(join(second.finalDirectory, 'files/same')).mode & 0o777, 0o444)
})

for (const { name, boots, isKept } of [
  { name: 'the next attempt goes on at its last written bytes', boots: ['same', 'same'], isKept: true },
  { name: 'nothing is believed of it after a reboot', boots: ['before', 'after'], isKept: false },
] as const) {
  test(`of an object that a killed attempt left, ${name}`, async () => {
    const big = randomBytes(40 * MIB)
    const from = await bench.makeSource({ big })
    const copyDirectory = bench.makePath('copy')
    bench.proxy.setRules([])
    await listIntoManifest({ ...from, copyDirectory, signal })
    const manifest = Manifest.open(copyDirectory)
    manifest.writeSetting('boot_id', boots[0])
    manifest.close()
    const left = Buffer.alloc(40 * MIB)
    big.copy(left, 0, 0, 8 * MIB)
    big.copy(left, 16 * MIB, 16 * MIB, 20 * MIB + 77)
    writeFileSync(join(copyDirectory, 'files/big'), left)
    const downloaded = await downloadFiles({ ...from, copyDirectory, signal, bootId: boots[1] })
    assert.equal(downloaded.fetchedBytes, isKept ? 28 * MIB + 4096 : 40 * MIB)
    assert.ok(readFileSync(join(copyDirectory, 'files/big')).equals(big))
  })
}

for (const { name, hasNodes = false, isOutOfOrder = false, fetchedBytes } of [
  { name: 'what a killed attempt read of it is kept', fetchedBytes: 24 * MIB + 4096 },
  { name: 'no page counts that may have been cut short', isOutOfOrder: true, fetchedBytes: 40 * MIB },
  { name: 'nothing is believed that another node may have sent', hasNodes: true, fetchedBytes: 40 * MIB },
]) {
  test(`of a source without checksums, ${name}`, async () => {
    const folder = bench.makePath('folder')
    mkdirSync(folder)
    const big = Buffer.from(
      BigUint64Array.from({ length: (40 * MIB) / 8 }, (_, index) => BigInt(index)).buffer,
    )
    writeFileSync(join(folder, 'big'), big)
    const dataset = { name: 'd', source: `file://${folder}/`, include: [], exclude: [] }
    const source = openFileSource(dataset)
    const copyDirectory = bench.makePath('copy')
    await listIntoManifest({ source, dataset, copyDirectory, signal })
    const manifest = Manifest.open(copyDirectory)
    manifest.writeSetting('boot_id', 'same')
    if (isOutOfOrder) manifest.writeSetting('out_of_order', '1')
    manifest.close()
    const left = Buffer.alloc(40 * MIB)
    big.copy(left, 0, 0, 16 * MIB)
    mkdirSync(join(copyDirectory, 'files'), { recursive: true })
    writeFileSync(join(copyDirectory, 'files/big'), left)
    const downloaded = await downloadFiles({ source, copyDirectory, signal, hasNodes, bootId: 'same' })
    assert.equal(downloaded.fetchedBytes, fetchedBytes)
    assert.ok(readFileSync(join(copyDirectory, 'files/big')).equals(big))
  })
}
