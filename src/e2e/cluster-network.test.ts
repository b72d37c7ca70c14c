import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { type ClusterNode, makeCluster } from '../testing/cluster.js'
import { assertSameFiles, makeObjects, makeStore, STORE_ENVIRONMENT } from '../testing/cluster-store.js'
import { succeeds } from '../testing/dsc-processes.js'
import { makeNetwork, type TestNetwork, whyNoNamespaces } from '../testing/network-namespace.js'
import { waitFor } from '../testing/world.js'

const skip = whyNoNamespaces()
const OBJECTS = makeObjects(20, 1)
/** Makes a transfer last twelve seconds, so that even a busy machine can cut it midway. */
const SLOWLY = ['--bandwidth-limit', '4MB/s']

/** Three nodes on hosts of their own; node-a has the dataset. */
async function makeHosts(context: TestContext): Promise<{
  readonly network: TestNetwork
  readonly nodes: readonly [ClusterNode, ClusterNode, ClusterNode]
}> {
  const network = await makeNetwork(context, 3)
  const store = await makeStore(context, OBJECTS)
  const relay = await network.relay(Number(new URL(store.endpoint).port))
  const endpoint = `http://${relay.host}:${relay.port}`
  const cluster = await makeCluster(context, {
    nodes: ['node-a', 'node-b', 'node-c'],
    datasets: { flowers: { ...(store.datasets.flowers as object), endpoint } },
    environment: STORE_ENVIRONMENT,
    // Parts that were asked for may have arrived in the kernel's memory: one at a time.
    stage: { concurrency: 1 },
    network,
  })
  await Promise.all(cluster.nodes.map((node) => node.startAgent()))
  const [a, b, c] = cluster.nodes
  await succeeds(a!.dsc('prepare', 'flowers', '--task', 'first'))
  return { network, nodes: [a!, b!, c!] }
}

async function waitForBytes(watcher: ClusterNode, node: string): Promise<void> {
  await waitFor(`bytes of a staging on ${node}`, async () => {
    const { transfers } = JSON.parse((await watcher.dsc('status', '--json')).stdout)
    return transfers.some(
      (transfer: { node: string; writtenBytes: number }) =>
        transfer.node === node && transfer.writtenBytes > 0,
    )
  })
}

test('two nodes that lose each other in mid-transfer: the rest comes from the store, a third still takes from the peer', {
  skip,
}, async (context) => {
  const { network, nodes } = await makeHosts(context)
  const [, b, c] = nodes
  const running = b.start('prepare', 'flowers', '--json', '--task', 'mine', ...SLOWLY)
  await waitForBytes(c, 'node-b')
  await network.cut(network.hosts[0]!, network.hosts[1]!)
  const finished = await succeeds(running.finished)
  const prepared = JSON.parse(finished.stdout)
  await assertSameFiles(prepared.path, OBJECTS)
  const { origins } = prepared.downloaded
  assert.ok(origins.peerBytes['node-a'] > 0, 'the beginning came from the peer')
  assert.ok(origins.storeBytes > 0, 'the rest came from the store')
  await network.cut(network.hosts[1]!, network.hosts[2]!) // it could take all from either
  const other = await succeeds(c.dsc('prepare', 'flowers', '--json', '--task', 'third'))
  assert.ok(JSON.parse(other.stdout).downloaded.origins.peerBytes['node-a'] > 0)
  const unreachable = await b.dsc('prepare', 'flowers', '--nodes', 'node-a,node-b', '--task', 'both')
  assert.match(unreachable.stderr, /1 of 2 nodes failed: node node-a/, 'the error names the node')
})

test('a node whose cable is pulled in mid-transfer goes on where it stopped when it is back', {
  skip,
}, async (context) => {
  const { network, nodes } = await makeHosts(context)
  const [a, b] = nodes
  const running = b.start('prepare', 'flowers', '--json', '--task', 'mine', ...SLOWLY)
  await waitForBytes(a, 'node-b')
  await network.hosts[1]!.unplug()
  const seen = JSON.parse((await a.dsc('status', '--json')).stdout)
  assert.ok(seen.transfers.some(({ node }: { node: string }) => node === 'node-b'))
  await sleep(6000)
  const { copies } = JSON.parse((await a.dsc('status', '--json')).stdout)
  assert.equal(copies.length, 2, 'nothing is concluded while its lease lasts')
  await network.hosts[1]!.plug()
  const finished = await succeeds(running.finished)
  await assertSameFiles(JSON.parse(finished.stdout).path, OBJECTS)
})
