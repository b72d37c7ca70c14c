import assert from 'node:assert/strict'
import { once } from 'node:events'
import { rm, truncate, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import type { ManifestEntry } from '../cache/manifest/manifest-entry.js'
import { formatObjectQuery, formatObjectsUrl, GatheredParser } from '../cache/sources/gathered-wire.js'
import { URGENCY_HEADER } from '../cache/sources/peer-wire.js'
import type { Copy } from '../model/copy.js'
import { temporaryDirectory } from '../testing/temporary-directory.js'
import type { LocalCopies } from './local-copies.js'
import { createMetrics } from './metrics.js'
import { room, type ServedObjects } from './serve-object.js'
import { serveObjects } from './serve-objects.js'

/** Files beside the buffer of 1 MiB: they fit in one, fill it, and are larger. */
const SIZES = [0, 1000, 1024 * 1024, 700_000, 700_000, 3_000_000, 5]

/** An agent with a copy of the files, and what it answers for `sizes`. */
async function ask(
  t: TestContext,
  sizes: readonly number[],
  spoil: (path: string) => Promise<void>,
  headers: Record<string, string> = {},
) {
  const root = await temporaryDirectory(t)
  const pathOf = (key: string) => join(root, key)
  for (const [index, size] of sizes.entries())
    await writeFile(pathOf(`${index}`), Buffer.alloc(size, 97 + index))
  await spoil(pathOf('1'))
  const copy = { dataset: 'flowers', version: 'v', copyId: 'c', path: root, origin: 's3' } as unknown as Copy
  const copies: Partial<LocalCopies> = {
    findReady: async ({ key, sizeBytes }) =>
      Number(key) < sizes.length
        ? {
            ...{ copy, part: undefined, path: pathOf(key) },
            entry: {
              key,
              sizeBytes,
              state: 'present',
              facts: null,
              digest: null,
            } as unknown as ManifestEntry,
          }
        : undefined,
    list: async () => [],
  }
  const metrics = createMetrics()
  const served = { copies, metrics, cache: { root } } as unknown as ServedObjects
  const server = createServer((request, response) => {
    const query = new URLSearchParams(request.url!.split('?')[1])
    serveObjects(served, { request, response, query, parameters: ['flowers'] }).catch(() =>
      response.destroy(),
    )
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => server.close())
  const named = [...sizes, 1].map((sizeBytes, index) =>
    formatObjectQuery({ key: `${index}`, sizeBytes, etag: null, versionId: null }),
  )
  const path = formatObjectsUrl('flowers', 's3://b/', named)
  const answer = await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}${path}`, { headers })
  const heard: { status: number; bytes: Buffer }[] = []
  let chunks: Buffer[] = []
  let status = 0
  const parser = new GatheredParser({
    onHead: (head) => {
      status = head.status
    },
    onData: (chunk) => chunks.push(Buffer.from(chunk)),
    onEnd: () => {
      heard.push({ status, bytes: Buffer.concat(chunks) })
      chunks = []
    },
  })
  parser.take(Buffer.from(await answer.arrayBuffer()))
  return { code: answer.status, heard, metrics: metrics.format() }
}

function expected(sizes: readonly number[]) {
  const files = sizes.map((size, index) => ({ status: 200, bytes: Buffer.alloc(size, 97 + index) }))
  return [...files, { status: 404, bytes: Buffer.alloc(0) }]
}

test('many files are sent in one answer, and it says which are not there', async (t) => {
  const { heard, metrics } = await ask(t, SIZES, async () => {})
  assert.deepEqual(heard, expected(SIZES))
  const sum = SIZES.reduce((all, size) => all + size, 0)
  assert.match(metrics, new RegExp(`dsc_sent_bytes_total\\{dataset="flowers"\\} ${sum}`))
})

for (const { what, spoil } of [
  { what: 'was removed', spoil: (path: string) => rm(path) },
  { what: 'is shorter than it was', spoil: (path: string) => truncate(path, 500) },
])
  test(`a file that ${what} fails alone`, async (t) => {
    const { heard } = await ask(t, SIZES, spoil)
    assert.deepEqual(heard, expected(SIZES).with(1, { status: 500, bytes: Buffer.alloc(0) }))
  })

test('an answer whose file ends early after some of it was sent is broken off', async (t) => {
  await assert.rejects(ask(t, [10, 3_000_000, 10], (path) => truncate(path, 2_000_000)))
})

test('a node with enough to send refuses only those who can have the files elsewhere', async (t) => {
  const mebibyte = 1024 * 1024
  const spared = { [URGENCY_HEADER]: 'listed' }
  for (let sends = 0; sends < 12; sends++) room.force(mebibyte)
  assert.equal((await ask(t, [10], async () => {}, spared)).code, 425)
  assert.deepEqual((await ask(t, [10, 20], async () => {})).heard, expected([10, 20]))
  for (let sends = 0; sends < 12; sends++) room.leave(mebibyte)
  assert.deepEqual((await ask(t, [10, 20], async () => {}, spared)).heard, expected([10, 20]))
})
