import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { after, type TestContext, test } from 'node:test'
import {
  GetBucketLocationCommand,
  GetObjectCommand,
  HeadObjectCommand,
  ListBucketsCommand,
  ListObjectsV2Command,
  PutObjectCommand,
  S3Client,
} from '@aws-sdk/client-s3'
import { startS3Server } from '../testing/s3-server.js'
import { makeWorld, type World, waitFor } from '../testing/world.js'

const server = await startS3Server()
after(() => server.close())

const OBJECTS: Readonly<Record<string, Buffer>> = {
  'flowers/a.txt': Buffer.from('alpha'),
  'flowers/b/c d+é=.bin': randomBytes(300_000),
  'flowers/empty': Buffer.alloc(0),
  'flowers/sub/z.txt': Buffer.from('zed'),
}

async function makeBucket(objects: Readonly<Record<string, Buffer>> = OBJECTS): Promise<string> {
  const bucket = await server.makeBucket()
  for (const [key, body] of Object.entries(objects)) await server.putObject(bucket, key, body)
  return bucket
}

const declare = (bucket: string, prefix: string) => ({
  source: `s3://${bucket}/${prefix}`,
  endpoint: server.endpoint,
  region: 'us-east-1',
  pathStyle: true,
})

/** Runs `use` with an agent that has a gateway, and a client that knows nothing but its URL. */
async function withGateway(world: World, use: (client: S3Client) => Promise<void>): Promise<void> {
  const agent = world.start(['agent', '--gateway', '127.0.0.1:0', '--json'])
  const [line] = await once(createInterface({ input: agent.process.stdout! }), 'line')
  const { gateway } = JSON.parse(String(line)) as { gateway: string }
  const client = new S3Client({
    endpoint: gateway,
    region: 'us-east-1',
    forcePathStyle: true,
    maxAttempts: 1,
    credentials: { accessKeyId: 'any', secretAccessKey: 'any' },
  })
  try {
    await use(client)
  } finally {
    client.destroy()
    agent.process.kill('SIGKILL')
    await agent.finished
  }
}

const settingsOf = async ({ config }: S3Client) => ({
  endpoint: await config.endpoint!(),
  region: 'us-east-1',
  forcePathStyle: true,
  maxAttempts: 1,
})

const read = async (client: S3Client, Bucket: string, Key: string, Range?: string) => {
  const { Body } = await client.send(new GetObjectCommand({ Bucket, Key, Range }))
  return Buffer.from(await Body!.transformToByteArray())
}

test('a client that sets only the endpoint reads what the bucket has', async (t) => {
  const bucket = await makeBucket()
  const world = await makeWorld(t, {
    server,
    agent: { listen: '127.0.0.1:0' },
    datasets: { flowers: declare(bucket, 'flowers/') },
  })
  await withGateway(world, async (client) => {
    const { Buckets } = await client.send(new ListBucketsCommand({}))
    assert.deepEqual(
      Buckets?.map(({ Name }) => Name),
      [bucket],
    )
    await client.send(new GetBucketLocationCommand({ Bucket: bucket }))
    for (const [key, body] of Object.entries(OBJECTS)) {
      assert.ok((await read(client, bucket, key)).equals(body), key)
      const head = await client.send(new HeadObjectCommand({ Bucket: bucket, Key: key }))
      assert.equal(head.ContentLength, body.length)
      assert.equal(head.ETag, `"${createHash('md5').update(body).digest('hex')}"`)
    }
    const part = await read(client, bucket, 'flowers/b/c d+é=.bin', 'bytes=1000-1999')
    assert.ok(part.equals(OBJECTS['flowers/b/c d+é=.bin']!.subarray(1000, 2000)))
    const all = await client.send(new ListObjectsV2Command({ Bucket: bucket }))
    assert.deepEqual(
      all.Contents?.map(({ Key, Size }) => [Key, Size]),
      Object.entries(OBJECTS).map(([key, { length }]) => [key, length]),
    )
    const folders = await client.send(new ListObjectsV2Command({ Bucket: bucket, Delimiter: '/' }))
    assert.deepEqual(folders.CommonPrefixes, [{ Prefix: 'flowers/' }])
    await assert.rejects(read(client, bucket, 'flowers/none'), { name: 'NoSuchKey' })
    await assert.rejects(read(client, bucket, 'other/a'), { name: 'AccessDenied' })
    await assert.rejects(client.send(new PutObjectCommand({ Bucket: bucket, Key: 'flowers/x', Body: 'x' })), {
      name: 'AccessDenied',
    })
    const status = JSON.parse((await world.dsc('status', '--json')).stdout)
    assert.equal(status.copies[0].referenceCount, 1, 'what is read is held')
    assert.notEqual((await world.dsc('evict', 'flowers', '--yes')).code, 0)
  })
})

test('who is no user that the gateway trusts signs with a key that dsc gave out', async (t) => {
  const bucket = await makeBucket()
  const world = await makeWorld(t, {
    server,
    agent: { listen: '127.0.0.1:0', tokenFile: 'token', gateway: { listen: '127.0.0.1:0', users: [54_321] } },
    datasets: { flowers: declare(bucket, 'flowers/') },
  })
  writeFileSync(join(world.directory, 'token'), randomBytes(24).toString('base64'))
  await withGateway(world, async (stranger) => {
    await assert.rejects(read(stranger, bucket, 'flowers/a.txt'), { name: 'InvalidAccessKeyId' })
    const printed = await world.dsc('gateway', 'key', 'alice', '--json')
    const { accessKeyId, secretAccessKey } = JSON.parse(printed.stdout)
    const signedBy = async (credentials: { accessKeyId: string; secretAccessKey: string }) => {
      const client = new S3Client({ ...(await settingsOf(stranger)), credentials })
      return (await read(client, bucket, 'flowers/b/c d+é=.bin')).length
    }
    assert.equal(await signedBy({ accessKeyId, secretAccessKey }), 300_000)
    const wrong = { accessKeyId: 'dsc-bob', secretAccessKey }
    await assert.rejects(signedBy(wrong), { name: 'SignatureDoesNotMatch' })
    const { protocol, hostname, port } = (await stranger.config.endpoint!())!
    const unsigned = await fetch(`${protocol}//${hostname}:${port}/${bucket}/flowers/a.txt`)
    assert.equal(unsigned.status, 403)
    assert.match(await unsigned.text(), /dsc gateway key/)
  })
})

test('where the policy has no room, bytes are passed through and not kept', async (t) => {
  const bucket = await makeBucket()
  const world = await makeWorld(t, {
    server,
    cache: { minFree: '1PiB' },
    agent: { listen: '127.0.0.1:0' },
    datasets: { flowers: declare(bucket, 'flowers/') },
  })
  await withGateway(world, async (client) => {
    for (const [key, body] of Object.entries(OBJECTS))
      assert.ok((await read(client, bucket, key)).equals(body), key)
    const part = await read(client, bucket, 'flowers/b/c d+é=.bin', 'bytes=-5')
    assert.ok(part.equals(OBJECTS['flowers/b/c d+é=.bin']!.subarray(-5)))
    const all = await client.send(new ListObjectsV2Command({ Bucket: bucket, Prefix: 'flowers/' }))
    assert.equal(all.KeyCount, 4)
    const status = JSON.parse((await world.dsc('status', '--json')).stdout)
    assert.deepEqual(status.copies, [])
  })
})

test('a connection goes on reading the version that it began with, and the ETag says which', async (t) => {
  const bucket = await makeBucket({ 'data/a': Buffer.from('first') })
  const datasets = { data: declare(bucket, 'data/') }
  const world = await makeWorld(t, { server, agent: { listen: '127.0.0.1:0' }, datasets })
  assert.equal((await world.dsc('prepare', 'data')).code, 0)
  const readVersion = async (client: S3Client) => {
    const { Body, ETag } = await client.send(new GetObjectCommand({ Bucket: bucket, Key: 'data/a' }))
    return { text: await Body!.transformToString(), etag: ETag }
  }
  await withGateway(world, async (kept) => {
    const first = await readVersion(kept)
    assert.equal(first.text, 'first')
    await server.putObject(bucket, 'data/a', Buffer.from('second'))
    assert.equal((await world.dsc('prepare', 'data', '--refresh')).code, 0)
    const credentials = { accessKeyId: 'any', secretAccessKey: 'any' }
    const settings = { ...(await settingsOf(kept)), credentials }
    const second = await waitFor('new connections to read the new version', async () => {
      const client = new S3Client(settings)
      const read = await readVersion(client).finally(() => client.destroy())
      return read.text === 'second' && read
    })
    assert.notEqual(second.etag, first.etag)
    assert.deepEqual(await readVersion(kept), first)
  })
})

const LARGE = Object.fromEntries(
  Array.from({ length: 40 }, (_, i) => [`many/${String(i).padStart(3, '0')}`, randomBytes(100_000)]),
)

/** A world that stages slowly: the 40 objects take it ten seconds at 400 kB/s. */
async function makeSlowWorld(t: TestContext, bandwidthLimit = '400kB/s') {
  const bucket = await makeBucket(LARGE)
  const world = await makeWorld(t, {
    server,
    stage: { bandwidthLimit, concurrency: 2 },
    agent: { listen: '127.0.0.1:0' },
    datasets: { many: declare(bucket, 'many/') },
  })
  return { bucket, world }
}

const readStatus = async (world: World) =>
  JSON.parse((await world.dsc('status', '--json')).stdout) as { copies: { state: string }[] }

test('an object is read while its dataset arrives, before others that were listed first', async (t) => {
  const { bucket, world } = await makeSlowWorld(t, '100kB/s')
  await withGateway(world, async (client) => {
    for (const key of ['many/039', 'many/030', 'many/035'])
      assert.ok((await read(client, bucket, key)).equals(LARGE[key]!), key)
    assert.deepEqual(
      (await readStatus(world)).copies.map(({ state }) => state),
      ['staging'],
    )
    const listed = await client.send(new ListObjectsV2Command({ Bucket: bucket, Prefix: 'many/' }))
    assert.equal(listed.KeyCount, 40)
    assert.deepEqual(
      (await readStatus(world)).copies.map(({ state }) => state),
      ['staging'],
    )
  })
})

test('readers of an arriving copy whose stager is killed get every byte', async (t) => {
  const { bucket, world } = await makeSlowWorld(t)
  const stager = world.start(['prepare', 'many'])
  await waitFor('the staging', () => world.query(`SELECT 1 FROM copies WHERE state = 'staging'`).length > 0)
  await withGateway(world, async (client) => {
    const keys = Object.keys(LARGE).toReversed()
    const reads = keys.map((key) => read(client, bucket, key))
    await reads[0]
    stager.process.kill('SIGKILL')
    const bodies = await Promise.all(reads)
    for (const [i, key] of keys.entries()) assert.ok(bodies[i]!.equals(LARGE[key]!), key)
  })
})
