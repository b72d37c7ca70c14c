import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { Manifest } from '../../manifest/manifest.js'
import type { FetchRequest, Source } from '../../sources/source.js'
import { openMemorySource } from '../../testing/memory-source.js'
import { temporaryDirectory } from '../../testing/temporary-directory.js'
import { ArrivalClient } from '../arrivals/arrival-client.js'
import { verifyCopy } from '../upkeep/verify-copy.js'
import { downloadFiles } from './download-files.js'
import { listIntoManifest } from './list-into-manifest.js'
import { publishCopy } from './publish-copy.js'

const KIB = 1024
const MIB = 1024 * KIB
const OBJECTS = { a: Buffer.from('first'), big: randomBytes(40 * MIB), shard: randomBytes(MIB + 77) }
const TOTAL = Object.values(OBJECTS).reduce((sum, { length }) => sum + length, 0)

type Request = readonly [key: string, offset: number, length: number]

/** A source that records every read of it and sends only what `answer` permits. */
class WatchedSource {
  readonly requests: Request[] = []
  /** Each request waits for the returned promise; it may also spoil the bytes. */
  answer: (request: Request) => Promise<void> | undefined = () => undefined
  spoil: (request: Request) => boolean = () => false
  readonly source: Source

  constructor() {
    const held = openMemorySource(OBJECTS)
    this.source = { ...held, openFetcher: () => this.#openFetcher(held) }
  }

  get readBytes(): number {
    return this.requests.reduce((sum, [, , length]) => sum + length, 0)
  }

  /** Holds back matching requests until the returned function is called. */
  hold(isHeld: (request: Request) => boolean): () => void {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.answer = (request) => (isHeld(request) ? promise : undefined)
    return resolve
  }

  async #openFetcher(held: Source) {
    const fetcher = await held.openFetcher({ connections: 1 })
    const fetch = async (asked: FetchRequest) => {
      const request = [asked.key, asked.offset, asked.length] as const
      this.requests.push(request)
      const stopped = new Promise<void>((resolve) => asked.signal?.addEventListener('abort', () => resolve()))
      await Promise.race([this.answer(request), stopped])
      const sink = (chunk: Uint8Array) => asked.sink(this.spoil(request) ? Buffer.alloc(chunk.length) : chunk)
      return fetcher.fetch({ ...asked, sink })
    }
    return { ...fetcher, fetch }
  }
}

async function openStaging(t: TestContext) {
  const root = await temporaryDirectory(t)
  const copyDirectory = join(root, 'staging')
  const watched = new WatchedSource()
  const { source } = watched
  const dataset = { name: 'data', source: 's3://data/', include: [], exclude: [] }
  await listIntoManifest({ dataset, source, copyDirectory, signal: new AbortController().signal })
  const stage = (
    signal = new AbortController().signal,
    rest: { concurrency?: number; bootId?: string } = {},
  ) => downloadFiles({ source, copyDirectory, signal, concurrency: 8, ...rest })
  const open = async (onSpoilt?: (key: string) => void) => {
    for (;;) {
      const client = await ArrivalClient.open(copyDirectory, { name: 'test', onSpoilt })
      if (client) {
        t.after(() => client.close())
        return client
      }
      await new Promise((resolve) => setTimeout(resolve, 5))
    }
  }
  const bytesOf = (key: string) => readFileSync(join(copyDirectory, 'files', key))
  const assertWhole = async () => {
    for (const [key, body] of Object.entries(OBJECTS)) assert.ok(bytesOf(key).equals(body), key)
    const finalDirectory = join(root, 'copies', 'final')
    await publishCopy({ root, copyDirectory, finalDirectory })
    const { damages } = await verifyCopy({
      copyDirectory: finalDirectory,
      signal: new AbortController().signal,
    })
    assert.deepEqual(damages, [])
    const manifest = Manifest.openPublished(finalDirectory)
    assert.equal(manifest.blocks.find(2), undefined)
    manifest.close()
  }
  return { watched, stage, open, bytesOf, assertWhole, copyDirectory }
}

function isOutOfOrder(copyDirectory: string): boolean {
  const manifest = Manifest.open(copyDirectory)
  try {
    return manifest.readSetting('out_of_order') !== undefined
  } finally {
    manifest.close()
  }
}

const ranges = (watched: WatchedSource, key: string) =>
  watched.requests.filter(([each]) => each === key).map(([, offset, length]) => [offset / KIB, length / KIB])

test('ranges come in the order of a reader, each byte once, and what is between them when all else has come', async (t) => {
  const { watched, stage, open, bytesOf, assertWhole } = await openStaging(t)
  const letGo = watched.hold(([key]) => key === 'a')
  const staged = stage(undefined, { concurrency: 1 })
  const reader = await open()
  reader.order([
    ['shard', 600 * KIB, 4 * KIB],
    ['shard', 100 * KIB + 5, 10 * KIB],
    ['shard', 102 * KIB, 20 * KIB],
  ])
  const first = reader.want(['shard', 100 * KIB + 5, 10 * KIB])
  assert.equal(await reader.want(['a', 0, 0]), 'there')
  letGo()
  assert.equal(await first, 'there')
  assert.ok(
    bytesOf('shard')
      .subarray(100 * KIB + 5, 110 * KIB)
      .equals(OBJECTS.shard.subarray(100 * KIB + 5, 110 * KIB)),
  )
  const { verifiedBy } = await staged
  assert.deepEqual(verifiedBy, { 'etag-md5': 3 })
  assert.deepEqual(ranges(watched, 'shard'), [
    [100, 12],
    [600, 4],
    [112, 12],
    [0, 100],
    [124, 476],
    [604, MIB / KIB - 604 + 77 / KIB],
  ])
  assert.equal(watched.readBytes, TOTAL)
  await assertWhole()
})

test('a range of a part that is on its way is asked for alone, and the part is proven by what is in the file', async (t) => {
  const { watched, stage, open, bytesOf, assertWhole, copyDirectory } = await openStaging(t)
  const letGo = watched.hold(([, , length]) => length > 10 * MIB)
  const staged = stage()
  const reader = await open()
  while (ranges(watched, 'big').length === 0) await new Promise((resolve) => setImmediate(resolve))
  assert.equal(await reader.want(['big', 17 * MIB, 100]), 'there')
  assert.ok(
    bytesOf('big')
      .subarray(17 * MIB, 17 * MIB + 100)
      .equals(OBJECTS.big.subarray(17 * MIB, 17 * MIB + 100)),
  )
  assert.equal(await reader.want(['big', 17 * MIB + 50, 100]), 'there')
  assert.ok(isOutOfOrder(copyDirectory), 'a part may have holes from now on')
  letGo()
  await staged
  assert.equal(watched.readBytes, TOTAL + 4 * KIB)
  await assertWhole()
})

test('without readers the bytes of each part come in order, also after a kill', async (t) => {
  const { stage, assertWhole, copyDirectory } = await openStaging(t)
  const left = Buffer.alloc(OBJECTS.big.length)
  OBJECTS.big.copy(left, 16 * MIB, 16 * MIB, 18 * MIB)
  mkdirSync(join(copyDirectory, 'files'), { recursive: true })
  writeFileSync(join(copyDirectory, 'files/big'), left)
  const manifest = Manifest.open(copyDirectory)
  manifest.writeSetting('boot_id', 'same')
  manifest.close()
  assert.equal((await stage(undefined, { bootId: 'same' })).fetchedBytes, TOTAL - 2 * MIB + 4 * KIB)
  assert.ok(!isOutOfOrder(copyDirectory))
  await assertWhole()
})

test('what came in ranges is not fetched again by the next attempt, but after a reboot', async (t) => {
  for (const bootId of ['one', 'another']) {
    const { watched, stage, open, assertWhole } = await openStaging(t)
    watched.hold(([, , length]) => length > MIB)
    const stop = new AbortController()
    const stopped = stage(stop.signal, { bootId: 'one' })
    const reader = await open()
    assert.equal(await reader.want(['big', 20 * MIB, MIB]), 'there')
    stop.abort()
    await assert.rejects(stopped)
    watched.hold(() => false)
    watched.requests.length = 0
    await stage(undefined, { bootId })
    const again = ranges(watched, 'big').some(([at, length]) => at! <= 20 * KIB && at! + length! > 20 * KIB)
    assert.equal(again, bootId === 'another')
    await assertWhole()
  }
})

for (const { name, key, offset, retries } of [
  {
    name: 'an object that did not come as it is, and it is fetched again',
    key: 'shard',
    offset: 0,
    retries: 1,
  },
  { name: 'a range that came otherwise than with its part', key: 'big', offset: 20 * MIB, retries: 0 },
])
  test(`readers hear of ${name}`, async (t) => {
    const { watched, stage, open, assertWhole } = await openStaging(t)
    const letGo = watched.hold((request) => request[0] === 'a' || request[2] > 10 * MIB)
    watched.spoil = (request) => request[0] === key && request[1] === offset && request[2] === 8 * KIB
    const staged = stage(undefined, { concurrency: key === 'shard' ? 1 : 8 })
    const spoilt: string[] = []
    const reader = await open((each) => spoilt.push(each))
    const range = reader.want([key, offset, 8 * KIB])
    assert.equal(await reader.want(['a', 0, 0]), 'there') // messages keep their order: the range is known by now
    if (key === 'shard') letGo()
    assert.equal(await range, 'there')
    const whole = reader.want(key)
    letGo()
    assert.equal(await whole, 'there')
    assert.deepEqual(spoilt, [key])
    assert.equal((await staged).retries, retries)
    await assertWhole()
  })
