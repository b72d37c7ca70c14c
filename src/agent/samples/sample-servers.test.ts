import assert from 'node:assert/strict'
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { StorageClient } from '../../feed/storage/storage-client.js'
import { indexSamples } from '../../samples/index-samples.js'
import { openSampleTable } from '../../samples/sample-table.js'
import { FINGERPRINT_AT } from '../../samples/table-layout.js'
import { makeCertificate } from '../../testing/certificate.js'
import { makeTestFolder, writeSamples } from '../../testing/sample-folder.js'
import { waitFor } from '../../testing/world.js'
import { openPass, signPass } from '../server/copy-pass.js'
import { formatSampleQuery } from './kept-samples.js'
import { openSampleServers } from './sample-servers.js'

const TOKEN = 'a token that all agents share'

function openServers(context: TestContext, options: Partial<Parameters<typeof openSampleServers>[0]> = {}) {
  const none = { token: undefined, tls: undefined, cacheFolder: undefined }
  const servers = openSampleServers({ host: '127.0.0.1', ...none, ...options })
  context.after(() => servers.close())
  return servers
}

test('an agent with a certificate gives samples to those who believe it, and to nobody in clear', async (context) => {
  const folder = makeTestFolder(context)
  const { certFile, keyFile } = makeCertificate(folder)
  const [cert, key] = [readFileSync(certFile, 'utf8'), readFileSync(keyFile, 'utf8')]
  const root = join(folder, 'samples')
  writeSamples(root, 20, () => 100)
  const { table } = await indexSamples(root, { cacheFolder: join(folder, 'cache') })
  const servers = openServers(context, { token: 'one', tls: { cert, key }, cacheFolder: folder })
  const address = {
    host: '127.0.0.1',
    port: await servers.serve(
      { copyId: 'one', path: root, split: undefined, rule: { below: [root] } },
      async () => table.bytes,
    ),
  }
  const connect = (tls: { ca: string | undefined } | undefined) =>
    StorageClient.connect({ address, token: 'one', table, tls, connectTimeoutMs: 10_000 })
  const client = await connect({ ca: cert })
  assert.equal((await client.fetchManifest()).fingerprint, table.fingerprint)
  client.close()
  for (const tls of [undefined, { ca: undefined }]) await assert.rejects(connect(tls), { code: 'FEED_GONE' })
})

test('samples are listed in a bounded number of threads, and all lists are made in the end', async (context) => {
  const folder = makeTestFolder(context)
  const root = join(folder, 'samples')
  writeSamples(root, 20, () => 100)
  const servers = openServers(context, { cacheFolder: folder })
  const countThreads = () => readdirSync('/proc/self/task').length
  const before = countThreads()
  const filters = Array.from({ length: 16 }, (_, index) => {
    return { split: undefined, only: [`e${index}`], format: undefined }
  })
  const answers = filters.map((filter) => servers.index(root, filter))
  assert.deepEqual(new Set(answers), new Set(['indexing']))
  let most = 0
  for (const filter of filters) {
    let answer = servers.index(root, filter)
    for (; answer === 'indexing'; answer = servers.index(root, filter)) {
      most = Math.max(most, countThreads() - before)
      await sleep(20)
    }
    await answer
  }
  // Four, four of the thread pool for files, and three that have answered and are about to end. Sixteen without a limit.
  assert.ok(most < 16, `${most} threads more`)
})

test('records are listed as the client says that they are written', async (context) => {
  const root = join(makeTestFolder(context), 'records')
  mkdirSync(root)
  writeFileSync(join(root, 'a.csv'), '1;"x\n2;y\n')
  const servers = openServers(context)
  const dialect = { delimiter: ';', quote: 'none', header: false } as const
  const filter = { split: undefined, only: undefined, format: 'csv', dialect } as const
  let answer = servers.index(root, filter)
  for (; answer === 'indexing'; answer = servers.index(root, filter)) await sleep(5)
  assert.equal(openSampleTable((await answer)!).count, 2)
  assert.deepEqual(JSON.parse(new URLSearchParams(formatSampleQuery(filter)).get('dialect')!), dialect)
})

/** A server of samples of a copy, which takes passes of `TOKEN`, and a way to connect. */
async function serveToPasses(context: TestContext, copyId = 'copy-1') {
  const folder = makeTestFolder(context)
  const root = join(folder, 'samples')
  writeSamples(root, 20, () => 100)
  const { table } = await indexSamples(root, { cacheFolder: join(folder, 'cache') })
  const tokens = [{ text: TOKEN, mayOnlyRead: false }]
  const servers = openServers(context, {
    token: TOKEN,
    judgePass: (wanted) => (name) => {
      const shown = openPass(name, { copyId: wanted, tokens, nowMs: Date.now() })
      return shown && { secrets: shown.signatures, leftMs: shown.pass.expiresAtMs - Date.now() }
    },
  })
  const served = { copyId, path: root, split: undefined, rule: { below: [root] } }
  const serve = (by: string, content = table.bytes) => servers.serve(served, async () => content, by)
  const connect = async (token: string, port?: number) => {
    const address = { host: '127.0.0.1', port: port ?? (await serve('1@node-a')) }
    const client = await StorageClient.connect({ address, token, table, connectTimeoutMs: 10_000 })
    context.after(() => client.close())
    return client
  }
  return { serve, connect, table }
}

const passFor = (copyId: string, lastsMs: number) => ({
  copyId,
  by: '1@node-a',
  expiresAtMs: Math.ceil((Date.now() + lastsMs) / 1000) * 1000,
})

test('a pass for the copy opens its samples as the token does; another one does not', async (context) => {
  const { connect, table } = await serveToPasses(context)
  const good = passFor('copy-1', 60_000)
  for (const right of [TOKEN, signPass(TOKEN, good)])
    assert.equal((await (await connect(right)).fetchManifest()).fingerprint, table.fingerprint)
  for (const wrong of [
    signPass(TOKEN, passFor('copy-2', 60_000)),
    signPass(TOKEN, passFor('copy-1', -60_000)),
    signPass('a token that others share', good),
    signPass(TOKEN, good).replace('1@', '2@'),
    signPass(TOKEN, good).slice(0, -1),
  ])
    await assert.rejects(connect(wrong), { code: 'FEED_PROTOCOL' })
})

test('a connection ends with its pass, unless a later one is shown', async (context) => {
  const { connect } = await serveToPasses(context)
  const short = passFor('copy-1', 2000) // whole seconds: up to 3 s
  const [ends, stays] = await Promise.all([0, 1].map(() => connect(signPass(TOKEN, short))))
  stays!.show(signPass(TOKEN, passFor('copy-1', 60_000)))
  await waitFor('the end of a connection', () => !ends!.isOpen)
  assert.ok(Date.now() > short.expiresAtMs - 500, 'it ended with its pass')
  await sleep(200) // the other one would have ended with it
  assert.ok(stays!.isOpen)
  await stays!.fetchManifest()
})

test('a holder of passes gets a bounded number of servers, of which those without connections make room', async (context) => {
  const { serve, connect, table } = await serveToPasses(context)
  // A table says itself which fingerprint it has.
  const another = (index: number) => {
    const bytes = Uint8Array.from(table.bytes)
    bytes[FINGERPRINT_AT] = index
    return bytes
  }
  const first = await serve('1@node-a')
  await connect(TOKEN, first)
  const ports = new Set([first])
  for (let index = 0; index < 18; index++) ports.add(await serve('1@node-a', another(index)))
  assert.ok(ports.size > 15)
  const isOpen = async (port: number) => {
    const client = await StorageClient.connect({
      address: { host: '127.0.0.1', port },
      token: TOKEN,
    }).catch(() => undefined)
    client?.close()
    return client !== undefined
  }
  let open = 0
  for (const port of ports) open += (await isOpen(port)) ? 1 : 0
  assert.equal(open, 16)
  assert.ok(await isOpen(first), 'the one in use stays')
  assert.notEqual(await serve('2@node-a'), first, 'nobody chooses what another one is served')
})
