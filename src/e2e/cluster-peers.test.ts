import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { makeCluster } from '../testing/cluster.js'
import {
  assertSameFiles,
  makeObjects,
  makeStore,
  STORE_ENVIRONMENT,
  shareOfGivenUp,
} from '../testing/cluster-store.js'
import { succeeds } from '../testing/dsc-processes.js'

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
  const first = await succeeds(a!.dsc('prepare', 'flowers', '--json', '--task', 'one'))
  assert.equal(JSON.parse(first.stdout).origin, 's3')
  assert.equal(store.sentBytes(), store.totalBytes)
  await store.close() // from here on only peers have it
  const second = await succeeds(b!.dsc('prepare', 'flowers', '--json', '--task', 'two'))
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
  await succeeds(b!.dsc('prepare', 'flowers', '--task', 'two'))
  const token = (await readFile(join(cluster.directory, 'token'), 'utf8')).trim()
  const headers = { authorization: `Bearer ${token}` }
  const metrics = await (await fetch(`${b!.url}/metrics`, { headers })).text()
  assert.match(metrics, /^dsc_hits_total\{dataset="flowers"\} 1$/m)
  assert.match(metrics, /^dsc_wait_seconds_total\{task="two"\} [0-9.]+$/m)
  assert.match(metrics, new RegExp(`^dsc_staged_bytes_total\\{from="node-a"\\} ${store.totalBytes}$`, 'm'))
  const remote = await succeeds(c!.dsc('prepare', 'flowers', '--remote', '--json', '--task', 'three'))
  const used = JSON.parse(remote.stdout)
  const status = JSON.parse((await c!.dsc('status', '--json')).stdout)
  const copy = status.copies.find((found: { node: string }) => found.node === used.node)
  assert.deepEqual([copy.referenceCount, copy.lastTask], [2, 'three'], 'it counts as a reference there')
  const index = await (await fetch(used.url, { headers })).text()
  assert.equal(index.trim().split('\n').length, objects.size)
  const line = JSON.parse(index.split('\n')[0]!)
  const body = await (await fetch(new URL(line.url, used.url), { headers })).arrayBuffer()
  assert.deepEqual(Buffer.from(body), objects.get(`data/${line.key}`))
})

test('eight nodes stage one dataset side by side and read the store about once', async (context) => {
  const objects = makeObjects(80, 1)
  const store = await makeStore(context, objects)
  const names = Array.from({ length: 8 }, (_, index) => `node-${index}`)
  const cluster = await makeCluster(context, {
    nodes: names,
    datasets: store.datasets,
    environment: STORE_ENVIRONMENT,
  })
  await Promise.all(cluster.nodes.map((node) => node.startAgent()))
  const run = await succeeds(
    cluster.nodes[0]!.dsc('prepare', 'flowers', '--nodes', names.join(','), '--json', '--task', 'all'),
  )
  const { nodes } = JSON.parse(run.stdout)
  assert.deepEqual(
    nodes.map(({ node }: { node: string }) => node),
    names,
  )
  for (const { path } of nodes) await assertSameFiles(path, objects)
  const ratio = store.sentBytes() / store.totalBytes
  assert.ok(ratio <= 1.2 + shareOfGivenUp(nodes), `read ${ratio.toFixed(2)} times the dataset from the store`)
})
