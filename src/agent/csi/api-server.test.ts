import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:https'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { test } from 'node:test'
import { makeCertificate } from '../../testing/certificate.js'
import { listenLocally } from '../../testing/listen-locally.js'
import { temporaryDirectory } from '../../testing/temporary-directory.js'
import { findApiServer } from './api-server.js'

test('a pod asks the API server with the token of the hour, and trusts its authority alone', async (context) => {
  const account = await temporaryDirectory(context)
  const { certFile, keyFile } = makeCertificate(account)
  const asked: unknown[] = []
  const server = createServer(
    { cert: readFileSync(certFile), key: readFileSync(keyFile) },
    async (request, response) => {
      const { method, url, headers } = request
      asked.push([method, url, headers.authorization, headers['content-type'], await text(request)])
      if (url === '/watch') response.write('{"type":"ADDED"}\n')
      else if (url === '/denied') response.writeHead(403).end('nodes "gpu-01" is forbidden')
      else response.end('{"kind":"Node"}')
    },
  )
  context.after(() => server.close())
  const port = await listenLocally(server)
  const environment = { KUBERNETES_SERVICE_HOST: '127.0.0.1', KUBERNETES_SERVICE_PORT: String(port) }
  const { signal } = new AbortController()
  assert.equal(findApiServer(environment, signal, account), undefined, 'no service account')

  writeFileSync(join(account, 'ca.crt'), readFileSync(certFile))
  assert.equal(findApiServer({}, signal, account), undefined, 'no pod')
  const api = findApiServer(environment, signal, account)!
  writeFileSync(join(account, 'token'), 'one\n')
  assert.deepEqual(await api.get('/api/v1/nodes/gpu-01'), { kind: 'Node' })
  writeFileSync(join(account, 'token'), 'two')
  await api.patch('/api/v1/nodes/gpu-01', 'merge-patch', { metadata: {} })
  await assert.rejects(api.get('/denied'), {
    message: 'the API server answers 403: nodes "gpu-01" is forbidden',
  })
  assert.deepEqual(asked, [
    ['GET', '/api/v1/nodes/gpu-01', 'Bearer one', undefined, ''],
    ['PATCH', '/api/v1/nodes/gpu-01', 'Bearer two', 'application/merge-patch+json', '{"metadata":{}}'],
    ['GET', '/denied', 'Bearer two', undefined, ''],
  ])
  const ending = new AbortController()
  const events = api.watch('/watch', ending.signal)[Symbol.asyncIterator]()
  assert.deepEqual((await events.next()).value, { type: 'ADDED' })
  ending.abort()
  await assert.rejects(events.next(), { message: 'aborted' })
  const other = makeCertificate(await temporaryDirectory(context))
  writeFileSync(join(account, 'ca.crt'), readFileSync(other.certFile))
  await assert.rejects(findApiServer(environment, signal, account)!.get('/'), /certificate|self-signed/)
})
