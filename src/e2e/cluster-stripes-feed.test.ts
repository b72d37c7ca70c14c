import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { openFeed } from '../exports/open-feed.js'
import { shuffleSamples } from '../feed/plan/order.js'
import { makeCertificate } from '../testing/certificate.js'
import { type ClusterNode, makeCluster } from '../testing/cluster.js'
import { makeStore, STORE_ENVIRONMENT } from '../testing/cluster-store.js'
import { type Running, succeeds } from '../testing/dsc-processes.js'
import { openTestFeedClient } from '../testing/feed-client.js'
import { temporaryDirectory } from '../testing/temporary-directory.js'
import { waitFor } from '../testing/world.js'

const COUNT = 240
const BATCH = 8
const SEED = 5
const LAYOUT = 'node-a,node-b,node-c'
/** Epochs in which a busy machine may have a slow node. */
const MOST_BUSY_EPOCHS = 200

function makeSamples(): Map<string, Buffer> {
  const objects = new Map<string, Buffer>()
  for (let index = 0; index < COUNT; index++) objects.set(`data/${index}.bin`, randomBytes(20_000 + index))
  return objects
}

/** Four nodes with agents; the dataset lies in stripes on the first three. */
async function makeStriped(context: TestContext, agent: Readonly<Record<string, unknown>> = {}) {
  const objects = makeSamples()
  const store = await makeStore(context, objects)
  const cluster = await makeCluster(context, {
    nodes: ['node-a', 'node-b', 'node-c', 'node-d'],
    datasets: store.datasets,
    environment: STORE_ENVIRONMENT,
    agent,
  })
  const agents = await Promise.all(cluster.nodes.map((node) => node.startAgent()))
  const [a, b, c, d] = cluster.nodes
  await succeeds(a!.dsc('prepare', 'flowers', '--stripe', LAYOUT, '--task', 'mine'))
  const samples = [...objects].sort(([one], [other]) => (one < other ? -1 : 1)).map(([, body]) => body)
  return { store, cluster, agents, samples, nodes: [a!, b!, c!, d!] as const }
}

/** Starts a feed of a tenth of the dataset's memory, so that samples come while an epoch is read. */
async function startFeed(context: TestContext, node: ClusterNode, directory: string) {
  const socket = join(directory, `${node.name}.sock`)
  const words = ['feed', 'serve', 'flowers', '--socket', socket, '--memory', '1MiB', '--seed', `${SEED}`]
  const running: Running = node.start(...words, '--k', '4', '--json')
  let ended: string | undefined
  void running.finished.then(({ stderr }) => {
    ended = stderr
  })
  // Its socket is there a moment before it listens.
  const client = await waitFor('the feed', () => {
    if (ended !== undefined) throw new Error(ended)
    return existsSync(socket) && openTestFeedClient(socket, { batch: BATCH }).catch(() => undefined)
  })
  context.after(() => client.close())
  return { running, client }
}

/** Reads an epoch: every sample has its own bytes, in the order of one machine. */
async function readEpoch(
  client: Awaited<ReturnType<typeof openTestFeedClient>>,
  samples: readonly Buffer[],
  epoch: number,
  atStep: (step: number) => unknown = () => {},
) {
  const ids: number[] = []
  for await (const batch of client.read({ epoch, step: 0 })) {
    await atStep(batch.step)
    for (const [i, id] of batch.ids.entries()) {
      assert.ok(batch.data[i]!.equals(samples[id]!), `bytes of sample ${id}`)
      ids.push(id)
    }
  }
  assert.deepEqual(ids, [...shuffleSamples({ sampleCount: COUNT, seed: SEED, epoch })])
}

/**
 * Reads epochs until one needs nothing from the store, which shows that the nodes have all of it. Returns the number of
 * the next epoch. A feed also asks the store for a sample whose node is slow, as nodes are on a busy machine.
 */
async function readFromNodes(
  read: (epoch: number) => Promise<void>,
  { store, from = 0 }: { readonly store: { sentBytes(): number }; readonly from?: number },
): Promise<number> {
  let epoch = from
  for (let before = -1; store.sentBytes() !== before; epoch++) {
    assert.ok(epoch < MOST_BUSY_EPOCHS, 'every epoch needed the store')
    before = store.sentBytes()
    await read(epoch)
  }
  return epoch
}

test('an epoch over stripes is the one of a single machine, also when an agent dies in the middle', async (context) => {
  const { store, cluster, agents, samples, nodes } = await makeStriped(context)
  const [a, b, , d] = nodes
  const { running, client } = await startFeed(context, a, cluster.directory)
  const next = await readFromNodes((epoch) => readEpoch(client, samples, epoch), { store })
  const hedged = store.sentBytes()
  const { leases } = JSON.parse((await a.dsc('status', '--json')).stdout)
  const feeding = leases.filter(({ task }: { task: string }) => task !== 'mine')
  assert.equal(feeding.length, 3, 'the feed keeps every stripe')
  await readEpoch(client, samples, next, (step) => step === 10 && agents[1]!.process.kill('SIGKILL'))
  assert.ok(store.sentBytes() > hedged, 'the rest of its samples came from the store')
  running.process.kill('SIGTERM')
  assert.equal((await running.finished).code, 0)
  assert.equal((await a.dsc('record', 'forget-node', b.name, '--yes')).code, 0)
  // This machine knows which samples the lost stripe had; another one does not.
  const again = await startFeed(context, a, join(cluster.directory, a.name))
  await readEpoch(again.client, samples, 2)
  const unknown = await d.dsc('feed', 'serve', 'flowers', '--socket', join(cluster.directory, 'd.sock'))
  assert.equal(unknown.code, 4, unknown.stderr)
  assert.match(unknown.stderr, /stripe 2\/3 of flowers: it is lost[\s\S]*dsc repair flowers/)
  await succeeds(a.dsc('repair', 'flowers'))
  const healed = await startFeed(context, d, join(cluster.directory, d.name))
  await readFromNodes((epoch) => readEpoch(healed.client, samples, epoch), { store })
})

test('a program that opens the dataset by its name reads the stripes itself, also when an agent dies', async (context) => {
  const { store, cluster, agents, samples, nodes } = await makeStriped(context)
  Object.assign(process.env, STORE_ENVIRONMENT)
  const feed = await openFeed({
    dataset: 'flowers',
    batchSize: BATCH,
    seed: SEED,
    memoryBytes: 2 ** 20,
    k: 4,
    configPath: nodes[3].configPath,
    cacheFolder: join(cluster.directory, 'tables'),
  })
  context.after(() => feed.close())
  const { leases } = JSON.parse((await nodes[0].dsc('status', '--json')).stdout)
  const feeding = leases.filter(({ task }: { task: string }) => task !== 'mine')
  assert.equal(feeding.length, 3, 'it keeps every stripe')
  let epoch = 0
  const readFeed = async (atSample: (count: number) => unknown = () => {}) => {
    const ids: number[] = []
    for await (const batch of feed) {
      for (const { id, data } of batch) {
        assert.ok(data.equals(samples[id]!), `bytes of sample ${id}`)
        ids.push(id)
      }
      atSample(ids.length)
    }
    assert.deepEqual(ids, [...shuffleSamples({ sampleCount: COUNT, seed: SEED, epoch })])
    epoch += 1
  }
  await readFromNodes(() => readFeed(), { store })
  await readFeed((count) => count === 10 * BATCH && agents[1]!.process.kill('SIGKILL'))
  await feed.close()
  const after = JSON.parse((await nodes[0].dsc('status', '--json')).stdout)
  assert.deepEqual(
    after.leases.filter(({ task }: { task: string }) => task !== 'mine'),
    [],
  )
})

test('a node that has the whole dataset stands in for a stripe, before the store does', async (context) => {
  const { store, cluster, agents, samples, nodes } = await makeStriped(context)
  const [a, , , d] = nodes
  await succeeds(d.dsc('prepare', 'flowers', '--task', 'whole'))
  const { client } = await startFeed(context, a, cluster.directory)
  await readEpoch(client, samples, 0, (step) => step === 10 && agents[1]!.process.kill('SIGKILL'))
  await readFromNodes((epoch) => readEpoch(client, samples, epoch), { store, from: 1 })
})

test('where agents have certificates the samples of stripes are encrypted, too', async (context) => {
  const { certFile, keyFile } = makeCertificate(await temporaryDirectory(context))
  const { store, cluster, samples, nodes } = await makeStriped(context, {
    tls: { certFile, keyFile, caFile: certFile },
  })
  const { client } = await startFeed(context, nodes[3], cluster.directory)
  await readFromNodes((epoch) => readEpoch(client, samples, epoch), { store })
})

test('an agent that is started anew in the middle of an epoch serves its samples again', async (context) => {
  const { store, cluster, agents, samples, nodes } = await makeStriped(context)
  const [a, b] = nodes
  const { client } = await startFeed(context, a, cluster.directory)
  const staged = store.sentBytes()
  await readEpoch(client, samples, 0, (step) => step === 10 && agents[1]!.process.kill('SIGKILL'))
  const without = store.sentBytes()
  assert.ok(without > staged, 'the samples of the dead agent came from the store')
  await b.startAgent()
  let sent = without
  for (let epoch = 1; ; epoch++) {
    await readEpoch(client, samples, epoch)
    if (store.sentBytes() === sent) break
    sent = store.sentBytes()
    assert.ok(epoch < 400, 'the feed has not noticed it')
    await sleep(50)
  }
})
