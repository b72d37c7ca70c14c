import assert from 'node:assert/strict'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { ArrivalClient } from '../cache/arrivals/arrival-client.js'
import { openFeed } from '../exports/index.js'
import { type Cluster, makeCluster, TOKEN } from '../testing/cluster.js'
import { assertSameFiles, makeObjects, makeStore, STORE_ENVIRONMENT } from '../testing/cluster-store.js'
import type { CountingStore } from '../testing/counting-store.js'
import { makeShardObjects } from '../testing/shard-objects.js'
import { waitFor } from '../testing/world.js'

Object.assign(process.env, STORE_ENVIRONMENT)

interface ColdCluster {
  readonly cluster: Cluster
  readonly store: CountingStore & { readonly totalBytes: number }
  readonly objects: ReadonlyMap<string, Buffer>
}

/** Nodes with agents, and a dataset that none of them has. */
async function makeColdCluster(
  context: TestContext,
  options: {
    readonly nodes: number
    readonly objects: ReadonlyMap<string, Buffer>
    readonly delayMs: number
    readonly concurrency: number
    readonly bandwidthLimit?: string
  },
): Promise<ColdCluster> {
  const { objects, delayMs, concurrency, bandwidthLimit } = options
  const store = await makeStore(context, objects, { delayMs })
  const cluster = await makeCluster(context, {
    nodes: Array.from({ length: options.nodes }, (_, index) => `node-${index}`),
    datasets: store.datasets,
    environment: STORE_ENVIRONMENT,
    stage: { concurrency, ...(bandwidthLimit !== undefined && { bandwidthLimit }) },
  })
  await Promise.all(cluster.nodes.map((node) => node.startAgent()))
  return { cluster, store, objects }
}

function assertReadOnce(store: ColdCluster['store']): void {
  const ratio = store.sentBytes() / store.totalBytes
  assert.ok(ratio <= 1.1, `read ${ratio.toFixed(2)} times the dataset from the store`)
}

test('nodes that each prepare a cold dataset on their own read the store about once', async (context) => {
  const { cluster, store, objects } = await makeColdCluster(context, {
    nodes: 4,
    objects: makeObjects(300, 1),
    delayMs: 100,
    concurrency: 8,
  })
  const runs = await Promise.all(
    cluster.nodes.map((node, index) => node.dsc('prepare', 'flowers', '--json', '--task', `task ${index}`)),
  )
  for (const run of runs) {
    assert.equal(run.code, 0, run.stderr)
    await assertSameFiles(JSON.parse(run.stdout).path, objects)
  }
  assertReadOnce(store)
})

test('a node that begins when another has read half takes that half from it', async (context) => {
  const { cluster, store, objects } = await makeColdCluster(context, {
    nodes: 2,
    objects: makeObjects(400, 0), // a few of them are under way while the second begins, and read twice
    delayMs: 100,
    concurrency: 4,
  })
  const [a, b] = cluster.nodes
  const first = a!.dsc('prepare', 'flowers', '--json', '--task', 'one')
  await waitFor('half of it at the first node', async () => store.sentBytes() > store.totalBytes / 2)
  const runs = await Promise.all([first, b!.dsc('prepare', 'flowers', '--json', '--task', 'two')])
  for (const run of runs) {
    assert.equal(run.code, 0, run.stderr)
    await assertSameFiles(JSON.parse(run.stdout).path, objects)
  }
  assertReadOnce(store)
})

test('what somebody waits for on one node is fetched next on the node that reads it from the store', async (context) => {
  const { cluster, store, objects } = await makeColdCluster(context, {
    nodes: 2,
    objects: makeObjects(120, 0),
    delayMs: 300, // so that the ten are waited for while the metrics are asked for, also on a busy machine
    concurrency: 1,
  })
  const runs = cluster.nodes.map((node) => node.dsc('prepare', 'flowers', '--json', '--task', node.name))
  const reader = await findStaging(cluster.nodes[1]!.root)
  // Half of them are the other node's to read; in the order of the listing they would come last.
  const wanted = [...objects.keys()]
    .map((key) => key.slice('data/'.length))
    .sort()
    .slice(-10)
  const waits = Promise.all(wanted.map((key) => reader.want(key)))
  const headers = { authorization: `Bearer ${TOKEN}` }
  await waitFor('a reader that waits, in the metrics', async () => {
    const metrics = await (await fetch(`${cluster.nodes[1]!.url}/metrics`, { headers })).text()
    const found = ['readers', 'waits'].map((what) =>
      new RegExp(`^dsc_arriving_${what}\\{dataset="flowers"\\} [1-9]`, 'm').test(metrics),
    )
    return found.every(Boolean)
  })
  assert.deepEqual([...new Set(await waits)], ['there'])
  const share = store.sentBytes() / store.totalBytes
  assert.ok(share < 0.6, `${(share * 100).toFixed()} % of the dataset had been read from the store by then`)
  reader.close()
  for (const run of await Promise.all(runs)) assert.equal(run.code, 0, run.stderr)
  assertReadOnce(store)
})

test('feeds on four nodes read a cold dataset in their own orders, and the store about once', async (context) => {
  const { cluster, store, objects } = await makeColdCluster(context, {
    nodes: 4,
    objects: makeObjects(240, 0),
    delayMs: 100,
    concurrency: 4,
  })
  const seen = await Promise.all(
    cluster.nodes.map(async (node, rank) => {
      const feed = await openFeed({
        dataset: 'flowers',
        batchSize: 10,
        seed: 3,
        memoryBytes: 16 * 2 ** 20,
        rank,
        world: cluster.nodes.length,
        configPath: node.configPath,
        cacheFolder: join(cluster.directory, node.name, 'tables'),
      })
      const keys: string[] = []
      for await (const batch of feed)
        for (const sample of batch) {
          assert.ok(sample.data.equals(objects.get(`data/${sample.name}`)!), sample.name)
          keys.push(sample.name)
        }
      await feed.close()
      return keys
    }),
  )
  assert.deepEqual(seen.flat().sort(), [...objects.keys()].map((key) => key.slice('data/'.length)).sort())
  assertReadOnce(store)
})

test('a node takes the list of what is in tar shards from another that has it, and asks the store for nothing', async (context) => {
  const shards = makeShardObjects({ shards: 4, inShard: 10, lengthOf: () => 50_000 })
  const objects = new Map([...shards].map(([key, body]) => [key.replace('flowers/', 'data/'), body]))
  const { cluster, store } = await makeColdCluster(context, {
    nodes: 2,
    objects,
    delayMs: 10,
    concurrency: 4,
  })
  const read = async (node: Cluster['nodes'][number]) => {
    const feed = await openFeed({
      dataset: 'flowers',
      batchSize: 10,
      memoryBytes: 16 * 2 ** 20,
      configPath: node.configPath,
      cacheFolder: join(cluster.directory, node.name, 'tables'),
    })
    const names: string[] = []
    for await (const batch of feed) for (const { name } of batch) names.push(name)
    await feed.close()
    return names
  }
  const [a, b] = cluster.nodes
  const names = await read(a!)
  assert.equal(names.length, 40)
  await a!.dsc('prepare', 'flowers')
  const before = { bytes: store.sentBytes(), requests: store.requests() }
  assert.deepEqual(await read(b!), names)
  const asked = store.requests() - before.requests
  assert.ok(asked < 10, `${asked} questions to the store, which has 40 headers`)
  assert.equal(store.sentBytes(), before.bytes)
})

/** A reader of the one copy that is being staged under `root`. */
async function findStaging(root: string): Promise<ArrivalClient> {
  let client: ArrivalClient | undefined
  await waitFor('a staging that can be asked', async () => {
    const [copyId] = await readdir(join(root, 'staging')).catch(() => [])
    client = copyId === undefined ? undefined : await ArrivalClient.open(join(root, 'staging', copyId))
    return client !== undefined
  })
  return client!
}
