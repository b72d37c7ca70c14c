import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { createServer, get, type IncomingMessage } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { formatObjectUrl, NO_WAIT_HEADER, URGENCY_HEADER } from '../../sources/peer-wire.js'
import { listenLocally } from '../../testing/listen-locally.js'
import type { LocalObject } from './local-copies.js'
import { room, serveObject } from './serve-object.js'

/** More than a connection buffers. */
const BYTES = 64 * 1024 * 1024
const OBJECT = { key: 'a.bin', sizeBytes: BYTES, etag: null, versionId: null }

/** An agent with one object, asked with these headers. The test resumes each answer when it wants to read. */
async function openAgent(
  t: TestContext,
): Promise<
  (
    headers: Record<string, string>,
    onSign?: (sign: { readonly statusCode: number | undefined }) => void,
  ) => Promise<IncomingMessage>
> {
  const root = mkdtempSync(join(tmpdir(), 'dsc-serve-object-'))
  t.after(() => rmSync(root, { recursive: true }))
  const path = join(root, 'a.bin')
  writeFileSync(path, '')
  truncateSync(path, BYTES)
  const copy = { origin: 'remote', version: null, path: root }
  const entry = { ...OBJECT, id: 1, state: 'present', partBytes: null, facts: null, digest: null }
  const found = { copy, entry, part: undefined, path } as unknown as LocalObject
  const served = {
    copies: { findReady: () => Promise.resolve(found) },
    metrics: { add: () => {} },
    cache: { root },
  } as unknown as Parameters<typeof serveObject>[0]
  const server = createServer((request, response) => {
    const query = new URL(request.url!, 'http://agent').searchParams
    serveObject(served, { request, response, parameters: ['flowers'], query }).catch(() => {})
  })
  const port = await listenLocally(server, t)
  const asked = formatObjectUrl('flowers', 's3://bucket/flowers/', OBJECT)
  return async (headers, onSign = () => {}) => {
    const request = get({ host: '127.0.0.1', port, path: asked, headers, agent: false })
    request.on('information', onSign)
    const [response] = (await once(request, 'response')) as [IncomingMessage]
    t.after(() => response.destroy())
    return response
  }
}

test('an agent with enough to send begins what nobody needs soon when something is over, and the rest at once', async (t) => {
  const ask = await openAgent(t)
  const spared = { [URGENCY_HEADER]: 'listed', [NO_WAIT_HEADER]: '1' }
  const running: IncomingMessage[] = []
  for (let sends = 0; sends < 12; sends++) running.push(await ask(spared))
  assert.deepEqual(new Set(running.map(({ statusCode }) => statusCode)), new Set([200]))
  assert.equal((await ask(spared)).statusCode, 425)
  const held = ask({ [URGENCY_HEADER]: 'listed' })
  for (const headers of [{ [NO_WAIT_HEADER]: '1' }, { [URGENCY_HEADER]: 'wanted' }])
    running.push(await ask(headers))
  assert.deepEqual(
    running.slice(12).map(({ statusCode }) => statusCode),
    [200, 200],
  )
  for (const response of running.slice(11)) response.destroy()
  assert.equal((await held).statusCode, 200)
})

test('a client that must wait learns that the agent is alive', async (t) => {
  const ask = await openAgent(t)
  for (let sends = 0; sends < 12; sends++) room.force(BYTES)
  t.mock.timers.enable({ apis: ['setInterval'] })
  const signs: (number | undefined)[] = []
  const held = ask({ [URGENCY_HEADER]: 'listed' }, ({ statusCode }) => signs.push(statusCode))
  while (signs.length < 2) {
    t.mock.timers.tick(3000)
    await setImmediate()
  }
  for (let sends = 0; sends < 12; sends++) room.leave(BYTES)
  assert.equal((await held).statusCode, 200)
  assert.deepEqual(new Set(signs), new Set([102]))
})
