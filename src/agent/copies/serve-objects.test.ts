import assert from 'node:assert/strict'
import { once } from 'node:events'
import { rm, symlink, truncate, writeFile } from 'node:fs/promises'
import { createServer, get, type IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { setTimeout } from 'node:timers/promises'
import type { ManifestEntry } from '../../manifest/manifest-entry.js'
import type { Copy } from '../../model/copy.js'
import { formatObjectQuery, formatObjectsUrl, readGathered } from '../../sources/gathered-wire.js'
import { URGENCY_HEADER } from '../../sources/peer-wire.js'
import { listenLocally } from '../../testing/listen-locally.js'
import { countDescriptors } from '../../testing/open-descriptors.js'
import { temporaryDirectory } from '../../testing/temporary-directory.js'
import { createMetrics } from '../metrics/metrics.js'
import type { LocalCopies } from './local-copies.js'
import { room, type ServedObjects } from './serve-object.js'
import { serveObjects } from './serve-objects.js'

/** File sizes around the 1 MiB buffer: some fit, one fills it, one is larger. */
const SIZES = [0, 1000, 1024 * 1024, 700_000, 700_000, 3_000_000, 5]

/** An agent with a copy whose files have these sizes. */
async function startAgent(t: TestContext, sizes: readonly number[]) {
  const root = await temporaryDirectory(t)
  const pathOf = (key: string) => join(root, key)
  for (const [index, size] of sizes.entries())
    await writeFile(pathOf(`${index}`), Buffer.alloc(size, 97 + index))
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
  })
  const port = await listenLocally(server, t)
  const named = [...sizes, 1].map((sizeBytes, index) =>
    formatObjectQuery({ key: `${index}`, sizeBytes, etag: null, versionId: null }),
  )
  const url = `http://127.0.0.1:${port}${formatObjectsUrl('flowers', 's3://b/', named)}`
  return { root, pathOf, metrics, server, url }
}

/** Asks for all files, and one that the agent lacks; reads nothing of the answer yet. */
async function begin(url: string, headers: Record<string, string> = {}): Promise<IncomingMessage> {
  const asking = get(url, { headers, agent: false })
  const [answer] = (await once(asking, 'response')) as [IncomingMessage]
  return answer
}

async function readAll(answer: IncomingMessage) {
  const heard: { status: number; bytes: Buffer }[] = []
  let chunks: Buffer[] = []
  const objects = readGathered(({ status }) => ({
    take: (piece) => void chunks.push(Buffer.from(piece)),
    end: () => {
      heard.push({ status, bytes: Buffer.concat(chunks) })
      chunks = []
    },
  }))
  for await (const chunk of answer) objects.push(chunk as Buffer)
  return heard
}

/** The agent's answer for `sizes`. */
async function ask(
  t: TestContext,
  sizes: readonly number[],
  spoil: (path: string) => Promise<void>,
  headers: Record<string, string> = {},
) {
  const { url, pathOf, metrics } = await startAgent(t, sizes)
  await spoil(pathOf('1'))
  const answer = await begin(url, headers)
  return { code: answer.statusCode, heard: await readAll(answer), metrics: metrics.format() }
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
  {
    what: 'became a link out of the cache',
    spoil: async (path: string) => {
      await rm(path)
      await symlink(process.execPath, path)
    },
  },
])
  test(`a file that ${what} fails alone`, async (t) => {
    const { heard } = await ask(t, SIZES, spoil)
    assert.deepEqual(heard, expected(SIZES).with(1, { status: 500, bytes: Buffer.alloc(0) }))
  })

test('an answer whose file ends early after some of it was sent is broken off', async (t) => {
  await assert.rejects(ask(t, [10, 3_000_000, 10], (path) => truncate(path, 2_000_000)))
})

const SPARED = { [URGENCY_HEADER]: 'listed' }

test('a node with enough to send refuses only those who can have the files elsewhere', async (t) => {
  const mebibyte = 1024 * 1024
  for (let sends = 0; sends < 12; sends++) room.force(mebibyte)
  assert.equal((await ask(t, [10], async () => {}, SPARED)).code, 425)
  assert.deepEqual((await ask(t, [10, 20], async () => {})).heard, expected([10, 20]))
  for (let sends = 0; sends < 12; sends++) room.leave(mebibyte)
  assert.deepEqual((await ask(t, [10, 20], async () => {}, SPARED)).heard, expected([10, 20]))
})

/** Files of different sizes, together more than a connection buffers. */
const MANY = Array.from({ length: 40 }, (_, index) => 200_000 + 17_000 * index)

/** How many answers of 1 MiB or more the agent still has room for; all of its room if nothing is being sent. */
async function countRoom(): Promise<number> {
  let free = 0
  while (await room.enter(1024 * 1024, 0)) free += 1
  for (let taken = free; taken > 0; taken--) room.leave(1024 * 1024)
  return free
}

/** Counts from now on how much is sent at the same time. */
function watchRoom(t: TestContext) {
  let [now, highest] = [0, 0]
  const { force, leave } = room
  t.mock.method(room, 'force', (bytes: number) => {
    now += 1
    highest = Math.max(highest, now)
    force.call(room, bytes)
  })
  t.mock.method(room, 'leave', (bytes: number) => {
    now -= 1
    leave.call(room, bytes)
  })
  return { most: () => highest }
}

test('of many who ask at once some are refused and come again, beside one who stops reading, and all have all files', async (t) => {
  const { url, root } = await startAgent(t, MANY)
  const stuck = await begin(url, SPARED)
  const { most } = watchRoom(t)
  let refused = 0
  const haveAll = async () => {
    for (;;) {
      const answer = await begin(url, SPARED)
      const heard = await readAll(answer)
      if (answer.statusCode === 200) return assert.deepEqual(heard, expected(MANY))
      assert.equal(answer.statusCode, 425)
      refused += 1
      await setTimeout(20)
    }
  }
  await Promise.all(Array.from({ length: 16 }, haveAll))
  assert.ok(refused > 0)
  assert.equal(most(), 11, 'beside the one who stopped')
  assert.equal(await countRoom(), 11)
  assert.deepEqual(await readAll(stuck), expected(MANY))
  while ((await countRoom()) < 12) await setTimeout(5)
  assert.equal(countDescriptors(root), 0)
})

test('clients that stop reading are cut off, and what they had of the node is free again', async (t) => {
  const { url, root, server } = await startAgent(t, MANY)
  const sockets: Socket[] = []
  server.on('connection', (socket: Socket) => sockets.push(socket))
  const stuck = await Promise.all(Array.from({ length: 12 }, () => begin(url, SPARED)))
  assert.equal(await countRoom(), 0)
  assert.equal((await begin(url, SPARED)).statusCode, 425)
  assert.deepEqual(await readAll(await begin(url)), expected(MANY), 'what a job waits for comes all the same')
  for (const socket of sockets.slice(0, 12)) socket.setTimeout(50) // as the server does after a minute
  while ((await countRoom()) < 12) await setTimeout(5)
  assert.equal(countDescriptors(root), 0)
  for (const answer of stuck) await assert.rejects(readAll(answer), { code: 'ECONNRESET' })
  assert.deepEqual(await readAll(await begin(url, SPARED)), expected(MANY))
})
