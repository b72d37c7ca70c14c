import assert from 'node:assert/strict'
import { closeSync, openSync, readSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { makeSampleFolder } from '../../testing/memory-samples.js'
import { makeTestFolder, sampleBytes } from '../../testing/sample-folder.js'
import type { StorageAddress } from '../storage/storage-client.js'
import { StorageServer } from '../storage/storage-server.js'
import { RemoteSource } from './remote-source.js'

const BYTES = 1000

/** Makes a node that may move, and a source on it that reads sample 3. */
async function makeMovingNode(
  context: TestContext,
  isThere: boolean,
  options: Partial<ConstructorParameters<typeof RemoteSource>[0]> = {},
) {
  const directory = makeTestFolder(context)
  const folder = await makeSampleFolder(directory, 8, () => BYTES)
  const open = async () => {
    const server = await StorageServer.open({ folder, host: '127.0.0.1', port: 0 })
    context.after(() => server.close())
    return server
  }
  const first = await open()
  const place: { now: StorageAddress | undefined; asked: number } = { now: undefined, asked: 0 }
  const arenaFd = openSync(join(directory, 'arena'), 'w+')
  const find = async () => {
    place.asked++
    return place.now
  }
  const source = new RemoteSource({
    table: folder.table,
    layout: 'full',
    arenaFd,
    token: undefined,
    fallback: undefined,
    nodes: [{ address: isThere ? first : undefined, find }],
    nowMs: () => performance.now(),
    breakerMs: 10,
    ...options,
  })
  context.after(async () => {
    await source.close()
    closeSync(arenaFd)
  })
  const read = async () => {
    const statuses: string[] = []
    const request = { node: 0, samples: Uint32Array.of(3), offsets: Float64Array.of(0), isMiss: true }
    await source.read(request, (_, status) => void statuses.push(status))
    return statuses[0]
  }
  const readUntilThere = async () => {
    while ((await read()) !== 'ok') await sleep(5)
    const bytes = Buffer.alloc(BYTES)
    readSync(arenaFd, bytes, 0, BYTES, 0)
    assert.ok(bytes.equals(sampleBytes(3, BYTES)))
  }
  return { first, open, place, source, read, readUntilThere }
}

test('a node that was started anew elsewhere is looked for, and asked again', async (context) => {
  const { first, open, place, source, read, readUntilThere } = await makeMovingNode(context, true)
  assert.equal(await read(), 'ok')
  await first.close()
  assert.equal(await read(), 'unreachable')
  assert.equal(source.isNodeUp(0), false)
  while (place.asked < 2) await sleep(5) // it is not there yet, so the source looks for it again
  place.now = await open()
  await readUntilThere()
  assert.equal(source.nodeName(0), `storage node 0 (127.0.0.1:${place.now.port})`)
  assert.equal(source.isNodeUp(0), true)
  assert.equal(source.counters!().breakers_opened, 1)
})

test('a node that listens nowhere at first is asked as soon as it does', async (context) => {
  const { first, place, source, read, readUntilThere } = await makeMovingNode(context, false)
  assert.match(source.nodeName(0), /not there/)
  assert.equal(await read(), 'unreachable')
  place.now = first
  await readUntilThere()
})

/** A source that never answers, and would write over what the arena has by then. */
const hangs = { close: async () => {}, origin: 'store', read: () => new Promise<void>(() => {}) }

for (const { what, fallback } of [
  { what: 'nobody else has its samples', fallback: undefined },
  { what: 'the store does not answer', fallback: hangs as never },
])
  test(`a node that is being restarted is waited for when ${what}`, async (context) => {
    const patience = { fallback, patienceMs: 30_000 }
    const { first, open, place, read, readUntilThere } = await makeMovingNode(context, true, patience)
    assert.equal(await read(), 'ok')
    await first.close()
    const reading = read()
    const asked = place.asked
    while (place.asked < asked + 3) await sleep(5)
    place.now = await open()
    assert.equal(await reading, 'ok')
    await readUntilThere()
  })

test('a node that does not come back is not waited for for ever', async (context) => {
  const { first, read } = await makeMovingNode(context, true, { patienceMs: 300 })
  await first.close()
  assert.equal(await read(), 'unreachable')
})
