import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { after, before, type TestContext, test } from 'node:test'
import { explainSystemError } from '../../failure/system-failure.js'
import { Manifest } from '../../manifest/manifest.js'
import type { Dataset } from '../../model/dataset.js'
import { openHubSource } from '../../sources/hf/hub-source.js'
import { openOciSource } from '../../sources/oci/oci-source.js'
import type { Source } from '../../sources/source.js'
import { openWebSource } from '../../sources/web/web-source.js'
import { type Fault, type FaultProxy, startFaultProxy } from '../../testing/fault-proxy.js'
import { startHubServer } from '../../testing/hub-server.js'
import { listenLocally } from '../../testing/listen-locally.js'
import { needs } from '../../testing/needs.js'
import { startOciRegistry } from '../../testing/oci-registry.js'
import { type SourceBench, startSourceBench } from '../../testing/source-bench.js'
import { downloadFiles } from './download-files.js'
import { listIntoManifest } from './list-into-manifest.js'

const FILES = { 'a.txt': Buffer.from('alpha'), 'b.bin': randomBytes(100_000) }
const STATUSES = [400, 401, 403, 404, 408, 409, 410, 412, 416, 429, 500, 501, 502, 503, 504]
const FAULTS: readonly Fault[] = [
  ...STATUSES.map((status) => ({ kind: 'status', status, code: 'Injected' }) as const),
  { kind: 'reset' },
  { kind: 'reset', afterBytes: 3 },
  { kind: 'truncate', afterBytes: 3 },
  { kind: 'garbage', of: 'answer' },
  { kind: 'garbage', of: 'body' },
]
/** Every fault from every request on, of each kind, takes minutes. Without it, each fault is tried once. */
const isEvery = process.env.DSC_TEST_EVERY_FAULT === '1'
const signal = new AbortController().signal
let bench: SourceBench
before(async () => {
  process.env.DSC_RETRY_FOR = '1ms'
  bench = await startSourceBench()
})
after(async () => {
  delete process.env.DSC_RETRY_FOR
  await bench.close()
})

interface Refusing {
  readonly proxy: FaultProxy
  readonly dataset: Dataset
  readonly open: () => Source
}

async function behindProxy(context: TestContext, target: string): Promise<FaultProxy> {
  const proxy = await startFaultProxy(target)
  context.after(() => proxy.close())
  return proxy
}

/** A source of each kind with `FILES`, and the proxy that answers instead of it. */
const KINDS: Readonly<Record<string, (context: TestContext) => Promise<Refusing>>> = {
  async s3() {
    const { dataset, source } = await bench.makeSource(FILES)
    return { proxy: bench.proxy, dataset, open: () => ({ ...source, close: async () => {} }) }
  },
  async https(context) {
    const sum = (body: Buffer) => createHash('sha256').update(body).digest('hex')
    const lines = Object.entries(FILES).map(([name, body]) => `${name} ${body.length} ${sum(body)}\n`)
    const files: Readonly<Record<string, Buffer>> = { ...FILES, 'files.txt': Buffer.from(lines.join('')) }
    const server = createServer((request, response) => {
      const body = files[request.url!.slice(1)]
      if (body === undefined) return response.writeHead(404).end()
      response.writeHead(200, { etag: `"${sum(body)}"`, 'content-length': body.length })
      return response.end(request.method === 'HEAD' ? undefined : body)
    })
    const port = await listenLocally(server, context)
    const proxy = await behindProxy(context, `http://127.0.0.1:${port}`)
    const dataset = { name: 'd', source: `${proxy.endpoint}/files.txt`, include: [], exclude: [] }
    return { proxy, dataset, open: () => openWebSource(dataset) }
  },
  async hub(context) {
    const hub = await startHubServer()
    context.after(() => hub.close())
    hub.commit('datasets/org/name', FILES)
    const proxy = await behindProxy(context, hub.endpoint)
    const rest = { endpoint: proxy.endpoint, include: [], exclude: [] }
    const dataset = { name: 'd', source: 'hf://datasets/org/name', ...rest }
    return { proxy, dataset, open: () => openHubSource(dataset) }
  },
  async oci(context) {
    const registry = await startOciRegistry(context)
    const layers = Object.entries(FILES).map(([title, body]) => ({ title, body }))
    await registry.push('org/model', 'v1', layers)
    const proxy = await behindProxy(context, `http://${registry.host}`)
    const source = `oci://${new URL(proxy.endpoint).host}/org/model:v1`
    const dataset = { name: 'd', source, include: [], exclude: [] }
    return { proxy, dataset, open: () => openOciSource(dataset) }
  },
}

async function stage({ dataset, open }: Refusing, copyDirectory: string): Promise<unknown> {
  const source = open()
  try {
    await listIntoManifest({ dataset, source, copyDirectory, signal })
    await downloadFiles({ source, copyDirectory, signal, threads: 0, stallTimeoutMs: 2000 })
    return undefined
  } catch (error) {
    return error
  } finally {
    await source.close()
  }
}

function presentFiles(copyDirectory: string): readonly string[] {
  const manifest = Manifest.findPublished(copyDirectory)
  const keys = manifest ? [...manifest.entries('present')].map(({ key }) => key) : []
  manifest?.close()
  return keys
}

for (const [turn, [kind, make]] of Object.entries(KINDS).entries()) {
  const skip = kind === 'oci' && needs('docker-registry', 'docker-registry')
  test(`whatever a source of kind ${kind} answers is a failure with a hint, and the next run goes on`, {
    skip,
  }, async (context) => {
    const from = await make(context)
    const { proxy } = from
    proxy.setRules([])
    proxy.forget()
    assert.equal(await stage(from, bench.makePath('copy')), undefined)
    const requests = proxy.requests.length
    assert.ok(requests >= 2, `${requests} requests`)
    for (const [index, fault] of FAULTS.entries()) {
      if (!isEvery && index % Object.keys(KINDS).length !== turn) continue
      for (
        let skip = isEvery ? 0 : Math.floor(index / 4) % requests;
        skip < requests;
        skip += isEvery ? 1 : requests
      ) {
        const what = `${JSON.stringify(fault)} from request ${skip} on`
        const copyDirectory = bench.makePath('copy')
        proxy.setRules([{ match: '', fault, skip }])
        const error = await stage(from, copyDirectory)
        if (error !== undefined) {
          const failure = explainSystemError(error)
          assert.ok(failure, `${what}: ${(error as Error).stack}`)
          assert.ok(failure.hint, `${what} has no hint: ${failure.message}`)
        }
        for (const key of presentFiles(copyDirectory))
          assert.ok(
            readFileSync(join(copyDirectory, 'files', key)).equals(FILES[key as keyof typeof FILES]),
            what,
          )
        proxy.setRules([])
        assert.equal(await stage(from, copyDirectory), undefined, what)
      }
    }
  })
}
