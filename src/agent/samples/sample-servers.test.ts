import assert from 'node:assert/strict'
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { isDscError } from '../../failure/dsc-error.js'
import { StorageClient } from '../../feed/storage/storage-client.js'
import { indexSamples } from '../../samples/index-samples.js'
import { openSampleTable } from '../../samples/sample-table.js'
import { makeCertificate } from '../../testing/certificate.js'
import { makeTestFolder, writeSamples } from '../../testing/sample-folder.js'
import { formatSampleQuery } from './kept-samples.js'
import { openSampleServers } from './sample-servers.js'

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
    port: await servers.serve({ path: root, split: undefined, rule: { below: [root] } }, table.bytes),
  }
  const connect = (tls: { ca: string | undefined } | undefined) =>
    StorageClient.connect({ address, token: 'one', table, tls, connectTimeoutMs: 1000 })
  const client = await connect({ ca: cert })
  assert.equal((await client.fetchManifest()).fingerprint, table.fingerprint)
  client.close()
  for (const tls of [undefined, { ca: undefined }])
    await assert.rejects(connect(tls), (error) => isDscError(error, 'FEED_GONE'))
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
  assert.ok(most <= 8, `${most} threads more`) // four, and those of the thread pool for files
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
