import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdirSync, readFileSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { after, before, type TestContext, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { Manifest } from '../../manifest/manifest.js'
import type { Dataset } from '../../model/dataset.js'
import { openFileSource } from '../../sources/file/file-source.js'
import { openHubSource } from '../../sources/hf/hub-source.js'
import { openOciSource } from '../../sources/oci/oci-source.js'
import type { Source } from '../../sources/source.js'
import { openWebSource } from '../../sources/web/web-source.js'
import { startHubServer } from '../../testing/hub-server.js'
import { listenLocally } from '../../testing/listen-locally.js'
import { needs } from '../../testing/needs.js'
import { startOciRegistry } from '../../testing/oci-registry.js'
import { type SourceBench, startSourceBench } from '../../testing/source-bench.js'
import { downloadFiles } from './download-files.js'
import { listIntoManifest } from './list-into-manifest.js'

const signal = new AbortController().signal
const MIB = 1024 * 1024
const PAGE = 4096
const CHILD = fileURLToPath(new URL('../../testing/stage-child.js', import.meta.url))
const BODY = randomBytes(4 * MIB)
let bench: SourceBench
before(async () => {
  bench = await startSourceBench()
})
after(() => bench.close())

interface Kept {
  readonly source: Source
  readonly dataset: Dataset
  /** Requests for bytes of the object so far, as methods and ranges; undefined: no server is asked. */
  readonly asked?: () => readonly string[]
}

function datasetOf(source: string): Dataset {
  return { name: 'd', source, include: [], exclude: [] }
}

/** A web server with the object; `etag`: the one that it sends, if any. */
async function startWebKind(context: TestContext, etag?: string): Promise<Kept> {
  const asked: string[] = []
  const server = createServer(({ method, headers: { range } }, response) => {
    asked.push(`${method} a ${range ?? ''}`.trim())
    const [, from = '0', to = `${BODY.length - 1}`] = /^bytes=(\d+)-(\d+)$/.exec(range ?? '') ?? []
    const part = BODY.subarray(Number(from), Number(to) + 1)
    const contentRange = { 'content-range': `bytes ${from}-${to}/${BODY.length}` }
    response.writeHead(range ? 206 : 200, {
      ...(etag && { etag }),
      'content-length': part.length,
      ...(range && contentRange),
    })
    response.end(method === 'HEAD' ? undefined : part)
  })
  const port = await listenLocally(server, context)
  const dataset = datasetOf(`http://127.0.0.1:${port}/a.bin`)
  return { dataset, source: openWebSource(dataset), asked: () => asked }
}

/** A source of each kind that has one object `a.bin` of `BODY`. */
const KINDS: Readonly<Record<string, (context: TestContext) => Promise<Kept>>> = {
  async s3() {
    bench.proxy.setRules([])
    const from = await bench.makeSource({ 'a.bin': BODY })
    const asked = () =>
      bench.proxy.requests.map(({ line }) => line).filter((line) => line.includes('/data/a'))
    return { ...from, asked: () => asked().map((line) => line.replace(/\/\S*/, 'a')) }
  },
  https: (context) => startWebKind(context, `"${createHash('md5').update(BODY).digest('hex')}"`),
  async hub(context) {
    const hub = await startHubServer()
    context.after(() => hub.close())
    hub.commit('datasets/org/name', { 'a.bin': BODY })
    const dataset = { ...datasetOf('hf://datasets/org/name'), endpoint: hub.endpoint }
    return { dataset, source: openHubSource(dataset) }
  },
  async file() {
    const folder = bench.makePath('folder')
    mkdirSync(folder)
    writeFileSync(join(folder, 'a.bin'), BODY)
    const dataset = datasetOf(`file://${folder}/`)
    return { dataset, source: openFileSource(dataset) }
  },
  async oci(context) {
    const registry = await startOciRegistry(context)
    await registry.push('org/model', 'v1', [{ title: 'a.bin', body: BODY }])
    const dataset = datasetOf(`oci://${registry.host}/org/model:v1`)
    return { dataset, source: openOciSource(dataset) }
  },
}

for (const [kind, open] of Object.entries(KINDS)) {
  const skip = kind === 'oci' && needs('docker-registry', 'docker-registry')
  test(`a download from ${kind} that is stopped inside a small object goes on there`, {
    skip,
  }, async (context) => {
    const { source, dataset } = await open(context)
    context.after(() => source.close())
    const copyDirectory = bench.makePath('copy')
    await listIntoManifest({ source, dataset, copyDirectory, signal })
    const stop = new AbortController()
    const options = { source, copyDirectory, threads: 0, bandwidthLimit: () => 2 * MIB }
    const stopped = downloadFiles({ ...options, signal: stop.signal })
    const path = join(copyDirectory, 'files/a.bin')
    while ((statSync(path, { throwIfNoEntry: false })?.size ?? 0) < MIB) await sleep(20)
    stop.abort('SIGTERM')
    await assert.rejects(stopped, { code: 'INTERRUPTED' })
    const leftBytes = statSync(path).size
    assert.ok(leftBytes >= MIB && leftBytes < BODY.length, `${leftBytes} bytes were left`)
    const { fetchedBytes } = await downloadFiles({ source, copyDirectory, signal })
    assert.equal(fetchedBytes, BODY.length - (leftBytes - (leftBytes % PAGE)))
    assert.ok(readFileSync(path).equals(BODY))
    assert.equal(statSync(path).mode & 0o777, 0o444)
  })
}

test('after kill -9 at most two seconds of the bytes of small objects come twice', async () => {
  const bytesPerSecond = MIB / 2
  const bodies = Array.from({ length: 3 }, () => randomBytes(4 * MIB))
  const objects = { 'a.bin': bodies[0]!, 'b.bin': bodies[1]!, 'c.bin': bodies[2]! }
  const { dataset, source } = await bench.makeSource(objects)
  const copyDirectory = bench.makePath('copy')
  bench.proxy.setRules([{ match: 'data/', fault: { kind: 'throttle', bytesPerSecond } }])
  const child = spawn(process.execPath, [CHILD, JSON.stringify({ dataset, copyDirectory, concurrency: 3 })])
  const ended = once(child, 'exit')
  while (bench.proxy.sentBytes < 6 * MIB) await sleep(20)
  child.kill('SIGKILL')
  assert.deepEqual(await ended, [null, 'SIGKILL'], 'the child was killed in mid-download')
  const sentBytes = bench.proxy.sentBytes
  bench.proxy.setRules([])
  bench.proxy.forget()
  await listIntoManifest({ source, dataset, copyDirectory, signal })
  const { fetchedBytes } = await downloadFiles({ source, copyDirectory, signal })
  const twice = sentBytes + fetchedBytes - 12 * MIB
  assert.ok(twice <= 2 * 3 * bytesPerSecond, `${twice} bytes came twice`)
  const asked = bench.proxy.requests.map(({ line }) => line).filter((line) => line.startsWith('GET'))
  assert.ok(asked.length > 0 && asked.every((line) => / bytes=\d{6,}-/.test(line)), asked.join())
  for (const [key, body] of Object.entries(objects))
    assert.ok(readFileSync(join(copyDirectory, 'files', key)).equals(body))
})

/** Leaves the beginning of an object as a killed run of this boot does. */
async function leave(
  { source, dataset }: Kept,
  left: { readonly bytes: Buffer; readonly bootId?: string | null; readonly seconds?: number },
): Promise<string> {
  const copyDirectory = bench.makePath('copy')
  await listIntoManifest({ source, dataset, copyDirectory, signal })
  const manifest = Manifest.open(copyDirectory)
  if (left.bootId !== null) manifest.writeSetting('boot_id', left.bootId ?? 'same')
  manifest.close()
  const path = join(copyDirectory, 'files/a.bin')
  mkdirSync(join(copyDirectory, 'files'), { recursive: true })
  writeFileSync(path, left.bytes, { mode: 0o444 })
  const endedMs = statSync(path).birthtimeMs / 1000 + (left.seconds ?? 0)
  utimesSync(path, endedMs, endedMs)
  return copyDirectory
}

for (const { name, left, hasNodes = false, asked } of [
  {
    name: 'goes on after its last whole page',
    left: { bytes: BODY.subarray(0, 2 * MIB + 77) },
    asked: ['HEAD a', `GET a bytes=${2 * MIB}-${BODY.length - 1}`],
  },
  {
    name: 'starts over if little came, quickly: a HEAD request would cost more',
    left: { bytes: BODY.subarray(0, 300_000) },
    asked: ['GET a'],
  },
  {
    name: 'goes on after little, if that took long',
    left: { bytes: BODY.subarray(0, 300_000), seconds: 2 },
    asked: ['HEAD a', `GET a bytes=${299_008}-${BODY.length - 1}`],
  },
  { name: 'with all its bytes is only verified', left: { bytes: BODY }, asked: ['HEAD a'] },
  {
    name: 'starts over after a reboot',
    left: { bytes: BODY.subarray(0, 2 * MIB), bootId: 'before' },
    asked: ['GET a'],
  },
  {
    name: 'starts over once its checksum reveals other bytes',
    left: { bytes: Buffer.alloc(2 * MIB, 1) },
    asked: ['HEAD a', `GET a bytes=${2 * MIB}-${BODY.length - 1}`, 'GET a'],
  },
  {
    name: 'goes on even if nodes may have sent it, as its checksum reveals a lie',
    left: { bytes: Buffer.alloc(2 * MIB, 1) },
    hasNodes: true,
    asked: ['HEAD a', `GET a bytes=${2 * MIB}-${BODY.length - 1}`, 'GET a'],
  },
] as const) {
  test(`a small object that a killed run left ${name}`, async (context) => {
    const from = await KINDS.s3!(context)
    const copyDirectory = await leave(from, left)
    bench.proxy.forget()
    await downloadFiles({ source: from.source, copyDirectory, signal, hasNodes, bootId: 'same' })
    // Where only the etag could prove it, the store is asked once more.
    const lines = from.asked!().filter((line, index) => index === 0 || line !== 'HEAD a')
    assert.deepEqual(lines, asked)
    assert.ok(readFileSync(join(copyDirectory, 'files/a.bin')).equals(BODY))
  })
}

test('a small object without a checksum starts over if another node may have sent its bytes', async (context) => {
  const from = await KINDS.file!(context)
  const copyDirectory = await leave(from, { bytes: Buffer.alloc(2 * MIB, 1) })
  const options = { source: from.source, copyDirectory, signal, bootId: 'same' }
  assert.equal((await downloadFiles({ ...options, hasNodes: true })).fetchedBytes, BODY.length)
  assert.ok(readFileSync(join(copyDirectory, 'files/a.bin')).equals(BODY))
})

test('a small object from a server without etags starts over: it may have been replaced', async (context) => {
  const from = await startWebKind(context)
  context.after(() => from.source.close())
  const copyDirectory = await leave(from, { bytes: Buffer.alloc(2 * MIB, 1) })
  const { fetchedBytes } = await downloadFiles({
    source: from.source,
    copyDirectory,
    signal,
    bootId: 'same',
  })
  assert.equal(fetchedBytes, BODY.length)
  assert.ok(readFileSync(join(copyDirectory, 'files/a.bin')).equals(BODY))
})

test('a complete object does not count if its file was written while the killed run read it', async (context) => {
  const from = await KINDS.file!(context)
  const copyDirectory = await leave(from, { bytes: Buffer.alloc(BODY.length, 1) })
  writeFileSync(join(fileURLToPath(from.dataset.source), 'a.bin'), Buffer.alloc(BODY.length, 2))
  const options = { source: from.source, copyDirectory, signal, bootId: 'same' }
  await assert.rejects(downloadFiles(options), { code: 'SOURCE_CHANGED' })
})

test('after a power loss that took the record of the boot, left files do not count in any later run', async (context) => {
  const from = await KINDS.file!(context)
  const copyDirectory = await leave(from, { bytes: Buffer.alloc(2 * MIB, 1), bootId: null })
  const options = { source: from.source, copyDirectory, bootId: 'same' }
  const stop = new AbortController()
  const stopped = downloadFiles({ ...options, signal: stop.signal, onReused: async () => stop.abort() })
  await assert.rejects(stopped, { code: 'INTERRUPTED' })
  assert.equal((await downloadFiles({ ...options, signal })).fetchedBytes, BODY.length)
  assert.ok(readFileSync(join(copyDirectory, 'files/a.bin')).equals(BODY))
})
