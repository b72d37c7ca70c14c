import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { chmodSync, writeFileSync } from 'node:fs'
import { Agent } from 'node:http'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { promisify } from 'node:util'
import { GetObjectCommand, HeadObjectCommand, S3Client } from '@aws-sdk/client-s3'
import { type CountingStore, startCountingStore } from '../testing/counting-store.js'
import { type Finished, succeeds } from '../testing/dsc-processes.js'
import { STORE_KEYS, startGateway } from '../testing/gateway-world.js'
import { needsRoot } from '../testing/needs.js'
import { makeWorld, s3Dataset, waitFor } from '../testing/world.js'

const run = promisify(execFile)
const ETAG_OF_ALPHA = '"2c1743a391305fbf367df8e4f069f9f9"'

/** A gateway of an origin with these objects, whose datasets are those of the prefixes, by name. */
async function makeGateway(
  t: TestContext,
  objects: ReadonlyMap<string, Buffer>,
  options: {
    readonly prefixes?: Readonly<Record<string, string>>
    readonly gateway?: Readonly<Record<string, unknown>>
    readonly cache?: Readonly<Record<string, unknown>>
    readonly isTold?: boolean
  } = {},
) {
  const store: CountingStore = await startCountingStore(objects, { hasChecksums: true })
  t.after(() => store.close())
  const prefixes = Object.entries(options.prefixes ?? { data: 'data/' })
  const world = await makeWorld(t, {
    ...(options.cache && { cache: options.cache }),
    agent: { listen: '127.0.0.1:0', gateway: { listen: '127.0.0.1:0', ...options.gateway } },
    datasets: Object.fromEntries(
      prefixes.map(([name, prefix]) => [name, s3Dataset('bucket', prefix, store.endpoint)]),
    ),
  })
  return { store, world, ...(await startGateway(world, { words: [], isTold: options.isTold === true })) }
}

test('conditions are kept to, and errors are told in documents', async (t) => {
  const objects = new Map([['data/a', Buffer.from('alpha')]])
  const { ask, read } = await makeGateway(t, objects)
  const rows: readonly [Record<string, string>, number, string?][] = [
    [{}, 200],
    [{ 'if-match': ETAG_OF_ALPHA }, 200],
    [{ 'if-match': '"other"' }, 412, 'PreconditionFailed'],
    [{ 'if-none-match': ETAG_OF_ALPHA }, 304],
    [{ 'if-none-match': '*' }, 304],
    [{ 'if-modified-since': 'Fri, 02 Jan 2026 00:00:00 GMT' }, 304],
    [{ 'if-unmodified-since': 'Wed, 31 Dec 2025 00:00:00 GMT' }, 412, 'PreconditionFailed'],
    [{ range: 'bytes=1-2' }, 206],
    [{ range: 'bytes=-2' }, 206],
    [{ range: 'bytes=3-1' }, 200],
    [{ range: 'bytes=0-0,2-3' }, 200],
    [{ range: 'bytes=5-' }, 416, 'InvalidRange'],
    [{ range: 'bytes=1-2', 'if-range': '"other"' }, 200],
  ]
  for (const [headers, status, code] of rows)
    for (const method of ['GET', 'HEAD']) {
      const asked = `${method} ${JSON.stringify(headers)}`
      const answer = await ask('/bucket/data/a', { method, headers })
      assert.equal(answer.status, status, asked)
      if (status < 400) assert.equal(answer.headers.etag, ETAG_OF_ALPHA, asked)
      if (method === 'HEAD') assert.equal(answer.body.length, 0, asked)
      else if (code)
        assert.match(answer.body.toString(), new RegExp(`^<\\?xml.*<Error><Code>${code}</Code>`, 's'))
    }
  assert.equal((await read('/bucket/data/a', { range: 'bytes=1-2' })).body.toString(), 'lp')
  const none = await read('/bucket/data/none')
  assert.equal(none.status, 404)
  assert.match(none.body.toString(), /<Code>NoSuchKey<\/Code>.*<Resource>\/bucket\/data\/none<\/Resource>/s)
  assert.match(none.body.toString(), new RegExp(`<RequestId>${none.headers['x-amz-request-id']}</RequestId>`))
  const located = await read('/bucket?location')
  assert.match(located.body.toString(), /<LocationConstraint/)
})

test('a client that asks for checksums gets that of the object, and refuses bytes that changed on the disk', async (t) => {
  const body = randomBytes(30_000)
  const { world, gateway } = await makeGateway(t, new Map([['data/a', body]]))
  const preparing = world.start(['prepare', 'data', '--task', 'a'], { environment: STORE_KEYS })
  const prepared = await succeeds(preparing.finished)
  const client = new S3Client({
    endpoint: gateway,
    region: 'us-east-1',
    forcePathStyle: true,
    credentials: { accessKeyId: 'any', secretAccessKey: 'any' },
  })
  t.after(() => client.destroy())
  const place = { Bucket: 'bucket', Key: 'data/a', ChecksumMode: 'ENABLED' } as const
  const sha256 = createHash('sha256').update(body).digest('base64')
  const answer = await client.send(new GetObjectCommand(place))
  assert.equal(answer.ChecksumSHA256, sha256)
  assert.equal(answer.ChecksumType, 'FULL_OBJECT')
  assert.ok(body.equals((await answer.Body!.transformToByteArray()) as Buffer))
  assert.equal((await client.send(new HeadObjectCommand(place))).ChecksumSHA256, sha256)
  const part = await client.send(new GetObjectCommand({ ...place, Range: 'bytes=0-9' }))
  assert.equal(part.ChecksumSHA256, undefined) // it would be the whole object's
  await part.Body!.transformToByteArray()
  const path = join(prepared.stdout.trim(), 'a')
  chmodSync(path, 0o644)
  writeFileSync(path, Buffer.from(body).fill(7, 100, 200))
  const damaged = await client.send(new GetObjectCommand(place))
  await assert.rejects(damaged.Body!.transformToByteArray(), /[Cc]hecksum mismatch/)
})

test('listings come in pages, after a key and by folders', async (t) => {
  const keys = ['data/a', 'data/b/1', 'data/b/2', 'data/c', 'data/ü/x', 'data/😀']
  const { read } = await makeGateway(t, new Map(keys.map((key) => [key, Buffer.from(key)])))
  const listAll = async (query: string) => {
    const found: string[] = []
    for (let token = ''; ; ) {
      const { body } = await read(`/bucket?list-type=2&${query}${token}`)
      const text = body.toString()
      found.push(...[...text.matchAll(/<(?:Key|CommonPrefixes><Prefix)>([^<]*)</g)].map(([, key]) => key!))
      const next = /<NextContinuationToken>([^<]*)</.exec(text)?.[1]
      assert.equal(text.includes('<IsTruncated>true'), next !== undefined)
      if (next === undefined) return found
      token = `&continuation-token=${next}`
    }
  }
  for (const maxKeys of [1, 2, 3, 1000]) {
    assert.deepEqual(await listAll(`max-keys=${maxKeys}`), keys)
    assert.deepEqual(await listAll(`max-keys=${maxKeys}&start-after=data/b/1`), keys.slice(2))
    assert.deepEqual(await listAll(`max-keys=${maxKeys}&prefix=data/b`), ['data/b/1', 'data/b/2'])
    const folders = await listAll(`max-keys=${maxKeys}&prefix=data/&delimiter=/`)
    assert.deepEqual(folders.toSorted(), ['data/a', 'data/b/', 'data/c', 'data/ü/', 'data/😀'])
  }
})

test('a dataset that is declared inside another answers for its keys', async (t) => {
  const objects = new Map(['data/a', 'data/inner/b', 'data/z'].map((key) => [key, Buffer.from(key)]))
  const prefixes = { outer: 'data/', inner: 'data/inner/' }
  const { read, world } = await makeGateway(t, objects, { prefixes })
  assert.equal((await read('/bucket/data/inner/b')).body.toString(), 'data/inner/b')
  const datasets = () =>
    world.query<{ dataset: string }>('SELECT dataset FROM copies').map((row) => row.dataset)
  assert.deepEqual(datasets(), ['inner'])
  const { body } = await read('/bucket?list-type=2')
  assert.deepEqual(
    [...body.toString().matchAll(/<Key>([^<]*)</g)].map(([, key]) => key),
    [...objects.keys()],
  )
})

for (const { users, status } of [
  { users: undefined, status: 403 },
  { users: [65_534], status: 200 },
  { users: [54_321], status: 403 },
  { users: 'all', status: 200 },
])
  test(`another user of this machine gets ${status} where agent.gateway.users is ${users}`, {
    skip: needsRoot,
  }, async (t) => {
    const gateway = users === undefined ? {} : { users }
    const made = await makeGateway(t, new Map([['data/a', Buffer.from('alpha')]]), { gateway })
    // It becomes another user once it runs: to others this checkout may be closed.
    const code = `process.setuid(65_534); fetch('${made.gateway}/bucket/data/a').then((answer) => console.log(answer.status))`
    const { stdout } = await run(process.execPath, ['-e', code])
    assert.equal(Number(stdout), status)
  })

test('what is passed through is counted and told', async (t) => {
  const objects = new Map([['data/a', Buffer.from('alpha')]])
  const { agent, read, metric } = await makeGateway(t, objects, { cache: { minFree: '1PiB' }, isTold: true })
  assert.equal((await read('/bucket/data/a')).body.toString(), 'alpha')
  const counted = () => metric('dsc_gateway_sent_bytes_total', 'origin')
  await waitFor('5 bytes to be counted', async () => (await counted()) === 5)
  agent.process.kill('SIGTERM')
  assert.match(
    (await agent.finished).stderr,
    /data is passed through and not kept: no room for data on node node-a/,
  )
})

test('a copy is held while it is read and for agent.gateway.keep after', async (t) => {
  const objects = new Map([['data/a', randomBytes(1_000_000)]])
  const { ask, world } = await makeGateway(t, objects, { gateway: { keep: '8s' } })
  const isReady = () => world.query(`SELECT 1 FROM copies WHERE state = 'ready'`).length > 0
  const evict = () => world.dsc('evict', 'data', '--yes')
  const heldUntilMs = () =>
    Math.max(
      ...world
        .query<{ expires_at_ms: number }>(`SELECT expires_at_ms FROM leases`)
        .map((row) => row.expires_at_ms),
    )
  assert.equal((await ask('/bucket/data/a')).body.length, 1_000_000)
  await waitFor('the copy to be ready', isReady)
  const firstMs = heldUntilMs()
  const readPart = async () =>
    assert.equal((await ask('/bucket/data/a', { headers: { range: 'bytes=0-9' } })).status, 206)
  await waitFor('the hold to be renewed', async () => {
    await readPart()
    return heldUntilMs() > firstMs
  })
  let answered: Finished | undefined
  void evict().then((finished) => {
    answered = finished
  })
  // It is read until dsc has answered: a busy machine may take longer to start dsc than the copy is kept.
  const refused = await waitFor('the refusal', async () => {
    await readPart()
    return answered
  })
  assert.match(refused.stderr, /gateway@node-a/, 'it is held for who reads')
  await waitFor('the hold to end', async () => (await evict()).code === 0)
  assert.equal(isReady(), false)
})

test('while a dataset is refreshed each connection sees one version of it', async (t) => {
  const content = (version: number) => Buffer.from(`version ${version}`)
  const objects = new Map([
    ['data/a', content(0)],
    ['data/b', content(0)],
  ])
  const { store, ask, world } = await makeGateway(t, objects)
  assert.equal((await ask('/bucket/data/a')).status, 200)
  await waitFor(
    'the copy to be ready',
    () => world.query(`SELECT 1 FROM copies WHERE state = 'ready'`).length > 0,
  )
  let isOver = false
  const seen = new Set<string>()
  const readers = Array.from({ length: 8 }, async () => {
    while (!isOver) {
      const agent = new Agent({ keepAlive: true, maxSockets: 1 })
      const bodies = new Set<string>()
      for (const key of ['a', 'b', 'a', 'b']) {
        const { status, body } = await ask(`/bucket/data/${key}`, { agent })
        assert.equal(status, 200, body.toString())
        bodies.add(body.toString())
      }
      agent.destroy()
      assert.equal(bodies.size, 1, [...bodies].join())
      seen.add([...bodies][0]!)
    }
  })
  for (let version = 1; version <= 3; version++) {
    for (const key of objects.keys()) store.put(key, content(version))
    const refresh = world.start(['prepare', 'data', '--refresh'], { environment: STORE_KEYS })
    assert.equal((await refresh.finished).code, 0)
    await waitFor(`version ${version}`, () => seen.has(`version ${version}`))
  }
  isOver = true
  await Promise.all(readers)
})

test('an agent whose gateway cannot listen ends and says where', async (t) => {
  const { address } = await makeGateway(t, new Map([['data/a', Buffer.from('alpha')]]))
  const second = await makeWorld(t, { agent: { listen: '127.0.0.1:0' } })
  const { code, stderr } = await second.dsc('agent', '--gateway', address.host)
  assert.equal(code, 3, stderr)
  assert.match(stderr, new RegExp(`agent.gateway: cannot listen at ${address.host} \\(EADDRINUSE\\)`))
})
