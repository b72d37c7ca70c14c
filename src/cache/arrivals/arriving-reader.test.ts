import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdirSync } from 'node:fs'
import { createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { Manifest } from '../../manifest/manifest.js'
import { temporaryDirectory } from '../../testing/temporary-directory.js'
import { waitFor } from '../../testing/world.js'
import { stagingDirectoryOf } from '../cache-layout.js'
import { ARRIVALS_VERSION, SOCKET_NAME } from './arrival-wire.js'
import { ArrivingReader } from './arriving-reader.js'
import { describeArrivals } from './describe-arrivals.js'

const GREETING = `${JSON.stringify({ arrivals: ARRIVALS_VERSION })}\n`
const STATUS = { name: 'a', ordered: 0, waits: 0, waitsFor: [] }

/** Listens in place of a stager, greets with `greeting`, answers any message with `answer`, and says nothing else. */
async function pretendToStage(t: TestContext, folder: string, { greeting = '', answer = '' }) {
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    socket.on('close', () => sockets.delete(socket))
    socket.write(greeting)
    socket.on('data', () => socket.write(answer))
  })
  server.listen(join(folder, SOCKET_NAME))
  await once(server, 'listening')
  t.after(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return sockets
}

/** A staging of one object. */
async function stage(t: TestContext) {
  const directory = await temporaryDirectory(t)
  const manifest = Manifest.create(directory)
  t.after(() => manifest.close())
  const rest = { sizeBytes: 1, etag: 'e', versionId: null, checksum: null, modifiedAtMs: 0 }
  manifest.add([{ key: 'a', ...rest }])
  const reader = new ArrivingReader('a reader')
  t.after(() => reader.close())
  return { directory, manifest, reader }
}

for (const { what, greeting } of [
  { what: 'was stopped', greeting: GREETING },
  { what: 'was stopped before anybody came', greeting: '' },
])
  test(`what another stager brings is found, though the first ${what}`, async (t) => {
    const { directory, manifest, reader } = await stage(t)
    await pretendToStage(t, directory, { greeting })
    const wait = reader.awaitAsked({ directory }, 'a', { signal: AbortSignal.timeout(20_000) })
    manifest.finishObject(manifest.findId('a')!, 'sha256', null)
    assert.equal(await wait, 'there')
  })

test('where a full disk keeps the manifest from being read, the staging counts as over', async (t) => {
  const { directory, reader } = await stage(t)
  t.mock.method(Manifest.prototype, 'find', () => {
    throw Object.assign(new Error('disk I/O error'), { code: 'SQLITE_IOERR' })
  })
  assert.equal(await reader.awaitAsked({ directory }, 'a', { signal: t.signal }), 'gone')
})

for (const { what, told } of [
  { what: 'says nothing', told: {} },
  { what: 'greets and says no more', told: { greeting: GREETING } },
  { what: 'tells rubbish', told: { greeting: GREETING, answer: '{"readers":5}\n' } },
  {
    what: 'tells of a reader without a name',
    told: { greeting: GREETING, answer: `${JSON.stringify({ readers: [{ ...STATUS, name: 5 }] })}\n` },
  },
])
  test(`of a stager that ${what} no reader is told, and no connection is left`, async (t) => {
    const root = await temporaryDirectory(t)
    const folder = stagingDirectoryOf(root, 'c')
    mkdirSync(folder, { recursive: true })
    const sockets = await pretendToStage(t, folder, told)
    const described = await describeArrivals(root, [{ copyId: 'c' }])
    assert.deepEqual(described.get('c') ?? [], [])
    await waitFor('the connection to end', () => sockets.size === 0)
  })

test('what a stager tells of its readers is shown as text alone', async (t) => {
  const root = await temporaryDirectory(t)
  const folder = stagingDirectoryOf(root, 'c')
  mkdirSync(folder, { recursive: true })
  const readers = [{ ...STATUS, name: 'a\u001b[2J', waits: 1, waitsFor: ['ü\u001b[2J'] }]
  await pretendToStage(t, folder, { greeting: GREETING, answer: `${JSON.stringify({ readers })}\n` })
  const described = await describeArrivals(root, [{ copyId: 'c' }])
  assert.partialDeepStrictEqual(described.get('c'), [{ name: 'a?[2J', waitsFor: ['ü?[2J'] }])
})
