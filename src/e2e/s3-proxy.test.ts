import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, type TestContext, test } from 'node:test'
import { makeCertificate } from '../testing/certificate.js'
import { succeeds } from '../testing/dsc-processes.js'
import { startForwardProxy } from '../testing/forward-proxy.js'
import { startS3Server } from '../testing/s3-server.js'
import { startTlsFront } from '../testing/tls-front.js'
import { makeWorld, s3Dataset } from '../testing/world.js'

const folder = mkdtempSync(join(tmpdir(), 'dsc-test-s3-proxy-'))
const { certFile, keyFile } = makeCertificate(folder)
const server = await startS3Server()
const front = await startTlsFront(server.endpoint, { certFile, keyFile })
const bucket = await server.makeBucket()
await server.putObject(bucket, 'data/large.bin', Buffer.alloc(40 * 1024 * 1024, 'dsc')) // in parts, by threads
await server.putObject(bucket, 'data/small.txt', 'small')
after(async () => {
  front.close()
  await server.close()
  rmSync(folder, { recursive: true })
})

const ENDPOINTS = { https: `https://127.0.0.1:${front.port}`, http: server.endpoint }

async function prepare(
  context: TestContext,
  scheme: keyof typeof ENDPOINTS,
  environment: Readonly<Record<string, string>>,
) {
  const datasets = { flowers: s3Dataset(bucket, 'data/', ENDPOINTS[scheme]) }
  const world = await makeWorld(context, { server, datasets })
  const given = { AWS_CA_BUNDLE: certFile, ...environment }
  return world.start(['prepare', 'flowers', '--task', 'mine'], { environment: given }).finished
}

for (const [scheme, request] of [
  ['https', /^CONNECT 127\.0\.0\.1:\d+$/],
  ['http', /^GET http:\/\/127\.0\.0\.1:\d+\//],
] as const) {
  const variable = `${scheme.toUpperCase()}_PROXY`
  test(`${variable} is on the way of every listing and reading`, async (context) => {
    const proxy = await startForwardProxy('s@crt')
    context.after(() => proxy.close())
    const url = `http://me:s%40crt@127.0.0.1:${proxy.port}`
    await succeeds(prepare(context, scheme, { [variable]: url }))
    assert.ok(
      proxy.seen.some((line) => request.test(line)),
      proxy.seen.join(),
    )
    if (scheme === 'http')
      assert.ok(
        proxy.seen.some((line) => line.includes('list-type=2')),
        proxy.seen.join(),
      )
  })

  test(`NO_PROXY keeps ${variable} out of the way`, async (context) => {
    const proxy = await startForwardProxy()
    context.after(() => proxy.close())
    const environment = { [variable]: `127.0.0.1:${proxy.port}`, NO_PROXY: 'localhost,127.0.0.0/8' }
    await succeeds(prepare(context, scheme, environment))
    assert.deepEqual(proxy.seen, [])
  })
}

test('a proxy that wants another password is named, its password is not', async (context) => {
  const proxy = await startForwardProxy('right')
  context.after(() => proxy.close())
  const { code, stderr } = await prepare(context, 'https', {
    HTTPS_PROXY: `http://me:canary@127.0.0.1:${proxy.port}`,
  })
  assert.equal(code, 8, stderr)
  assert.match(stderr, new RegExp(`the proxy http://127\\.0\\.0\\.1:${proxy.port} answered 407`))
  assert.match(stderr, /HTTPS_PROXY/)
  assert.doesNotMatch(stderr, /canary/)
})

test('a proxy that is not there is named', async (context) => {
  const { code, stderr } = await prepare(context, 'http', { HTTP_PROXY: 'http://127.0.0.1:9' })
  assert.notEqual(code, 0)
  assert.match(stderr, /through the proxy http:\/\/127\.0\.0\.1:9/)
})
