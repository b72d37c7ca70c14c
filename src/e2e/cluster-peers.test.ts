import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { type CountingStore, startCountingStore } from '../testing/counting-store.js'
import { makeCluster } from './cluster.js'

const STORE_ENVIRONMENT = {
  AWS_ACCESS_KEY_ID: 'test',
  AWS_SECRET_ACCESS_KEY: 'test',
  AWS_EC2_METADATA_DISABLED: 'true',
  AWS_CONFIG_FILE: '/dev/null',
  AWS_SHARED_CREDENTIALS_FILE: '/dev/null',
}

const MEBIBYTE = 1024 * 1024

function makeObjects(small: number, large: number): Map<string, Buffer> {
  const objects = new Map<string, Buffer>()
  for (let index = 0; index < small; index++) objects.set(`data/s${index}.bin`, randomBytes(100_000 + index))
  for (let index = 0; index < large; index++) objects.set(`data/l${index}.bin`, randomBytes(40 * MEBIBYTE))
  return objects
}

async function makeStore(
  context: TestContext,
  objects: ReadonlyMap<string, Buffer>,
  options: Parameters<typeof startCountingStore>[1] = {},
): Promise<CountingStore & { readonly datasets: Record<string, unknown>; readonly totalBytes: number }> {
  const store = await startCountingStore(objects, options)
  context.after(() => store.close())
  const totalBytes = [...objects.values()].reduce((sum, body) => sum + body.length, 0)
  const flowers = {
    ...{ source: 's3://bucket/data/', endpoint: store.endpoint, region: 'us-east-1', pathStyle: true },
  }
  return { ...store, datasets: { flowers }, totalBytes }
}

async function assertSameFiles(path: string, objects: ReadonlyMap<string, Buffer>): Promise<void> {
  const digest = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex')
  for (const [key, body] of objects) {
    assert.equal(digest(await readFile(join(path, key.slice('data/'.length)))), digest(body), key)
  }
}

test('a node takes a dataset from a peer that has it, and leaves the store alone', async (context) => {
  const objects = makeObjects(20, 1)
  const store = await makeStore(context, objects)
  const cluster = await makeCluster(context, {
    nodes: ['node-a', 'node-b', 'node-c'],
    datasets: store.datasets,
    environment: STORE_ENVIRONMENT,
  })
  const [a, b, c] = cluster.nodes
  for (const node of cluster.nodes) await node.startAgent()
  const first = await a!.dsc('prepare', 'flowers', '--json', '--task', 'one')
  assert.equal(first.code, 0, first.stderr)
  assert.equal(JSON.parse(first.stdout).origin, 's3')
  assert.equal(store.sentBytes(), store.totalBytes)
  await store.close() // from here on only peers have it
  const second = await b!.dsc('prepare', 'flowers', '--json', '--task', 'two')
  assert.equal(second.code, 0, second.stderr)
  const prepared = JSON.parse(second.stdout)
  assert.equal(prepared.origin, 'peer')
  assert.equal(prepared.node, 'node-b')
  assert.equal(prepared.version, JSON.parse(first.stdout).version, 'a copy of a copy is the same version')
  assert.deepEqual(prepared.downloaded.verifiedBy.size ?? 0, 0, 'every file was proven by a checksum')
  await assertSameFiles(prepared.path, objects)
  const leases = JSON.parse((await c!.dsc('status', '--json')).stdout).leases
  assert.deepEqual(
    leases.map((lease: { node: string; purpose: string }) => [lease.node, lease.purpose]).sort(),
    [
      ['node-a', 'use'],
      ['node-b', 'use'],
    ],
    'the transfer lease has ended',
  )
  const remote = await c!.dsc('prepare', 'flowers', '--remote', '--json', '--task', 'three')
  assert.equal(remote.code, 0, remote.stderr)
  const used = JSON.parse(remote.stdout)
  const status = JSON.parse((await c!.dsc('status', '--json')).stdout)
  const copy = status.copies.find((found: { node: string }) => found.node === used.node)
  assert.deepEqual([copy.referenceCount, copy.lastTask], [2, 'three'], 'it counts as a reference there')
  const token = (await readFile(join(cluster.directory, 'token'), 'utf8')).trim()
  const headers = { authorization: `Bearer ${token}` }
  const index = await (await fetch(used.url, { headers })).text()
  assert.equal(index.trim().split('\n').length, objects.size)
  const line = JSON.parse(index.split('\n')[0]!)
  const body = await (await fetch(new URL(line.url, used.url), { headers })).arrayBuffer()
  assert.deepEqual(Buffer.from(body), objects.get(`data/${line.key}`))
})

test('eight nodes stage one dataset side by side and read the store about once', async (context) => {
  const objects = makeObjects(200, 2)
  const store = await makeStore(context, objects)
  const names = Array.from({ length: 8 }, (_, index) => `node-${index}`)
  const cluster = await makeCluster(context, {
    nodes: names,
    datasets: store.datasets,
    environment: STORE_ENVIRONMENT,
  })
  for (const node of cluster.nodes) await node.startAgent()
  const run = await cluster.nodes[0]!.dsc(
    'prepare',
    'flowers',
    '--nodes',
    names.join(','),
    '--json',
    '--task',
    'all',
  )
  assert.equal(run.code, 0, run.stderr)
  const { nodes } = JSON.parse(run.stdout)
  assert.deepEqual(
    nodes.map(({ node }: { node: string }) => node),
    names,
  )
  for (const { path } of nodes) await assertSameFiles(path, objects)
  const ratio = store.sentBytes() / store.totalBytes
  assert.ok(ratio <= 1.2, `read ${ratio.toFixed(2)} times the dataset from the store`)
  console.log(`store read ${ratio.toFixed(3)} times by 8 nodes`)
})
