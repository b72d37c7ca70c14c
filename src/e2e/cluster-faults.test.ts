import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'
import { connect, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Cluster, type ClusterNode, makeCluster } from '../testing/cluster.js'
import { assertSameFiles, makeObjects, makeStore, STORE_ENVIRONMENT } from '../testing/cluster-store.js'
import { type Running, succeeds } from '../testing/dsc-processes.js'
import { listenLocally } from '../testing/listen-locally.js'
import { waitFor } from '../testing/world.js'

/** One large and some small objects; at 12 MB/s there are four seconds in which something can happen. */
const OBJECTS = makeObjects(20, 1)
const SLOWLY = { bandwidthLimit: '12MB' }
/** Makes a transfer last twelve seconds, so that even a busy machine can look at it or stop it midway. */
const SLOWER = ['--bandwidth-limit', '4MB/s']

interface Ready {
  readonly cluster: Cluster
  readonly store: Awaited<ReturnType<typeof makeStore>>
  readonly agents: readonly Running[]
  readonly nodes: readonly [ClusterNode, ClusterNode, ClusterNode]
}

/** Three nodes with agents; the first `holders` of them have the dataset. */
async function makeReady(
  context: TestContext,
  holders: number,
  options: Partial<Parameters<typeof makeCluster>[1]> = {},
): Promise<Ready> {
  const store = await makeStore(context, OBJECTS)
  const cluster = await makeCluster(context, {
    nodes: ['node-a', 'node-b', 'node-c'],
    datasets: store.datasets,
    environment: STORE_ENVIRONMENT,
    stage: SLOWLY,
    ...options,
  })
  const agents = await Promise.all(cluster.nodes.map((node) => node.startAgent()))
  for (const node of cluster.nodes.slice(0, holders)) {
    await succeeds(node.dsc('prepare', 'flowers', '--task', `on ${node.name}`))
  }
  const [a, b, c] = cluster.nodes
  return { cluster, store, agents, nodes: [a!, b!, c!] }
}

interface Status {
  readonly copies: readonly { node: string; state: string; writtenBytes: number }[]
  readonly leases: readonly { node: string; purpose: string }[]
  readonly transfers: readonly { servedBy: readonly string[] }[]
}

/** Waits until a staging on `node` has received some bytes but not all. Returns the status that says so. */
async function waitForTransfer(watcher: ClusterNode, node: string): Promise<Status> {
  let status: Status = { copies: [], leases: [], transfers: [] }
  await waitFor(`bytes of a staging on ${node}`, async () => {
    status = JSON.parse((await watcher.dsc('status', '--json')).stdout)
    return status.copies.some(
      (copy) => copy.node === node && copy.state === 'staging' && copy.writtenBytes > 0,
    )
  })
  return status
}

for (const signal of ['SIGKILL', 'SIGSTOP'] as const) {
  test(`a transfer goes on from another peer when the serving agent gets ${signal}`, async (context) => {
    const { store, agents, nodes } = await makeReady(context, 2)
    await store.close() // only the other peer can help
    const [a, b, c] = nodes
    const running = c.start('prepare', 'flowers', '--json', '--task', 'mine', ...SLOWER)
    const status = await waitForTransfer(a, 'node-c')
    // Asked once: on a busy machine the transfer would be over by the second answer.
    const lease = status.leases.find(({ purpose }) => purpose === 'transfer')
    assert.ok(lease, 'the peer that serves holds a transfer lease')
    assert.ok(status.transfers[0]!.servedBy.includes(lease.node), 'the status says who serves whom')
    const alone = (await a.dsc('status', '--node', 'node-c')).stdout
    assert.match(alone, /node-c ← node-[ab]/, 'also where only the receiving node is asked for')
    const index = lease.node === 'node-a' ? 0 : 1
    agents[index]!.process.kill(signal)
    const finished = await running.finished
    if (signal === 'SIGSTOP') agents[index]!.process.kill('SIGCONT')
    assert.equal(finished.code, 0, finished.stderr)
    const prepared = JSON.parse(finished.stdout)
    await assertSameFiles(prepared.path, OBJECTS)
    const peers = Object.keys(prepared.downloaded.origins.peerBytes).sort()
    assert.deepEqual(peers, ['node-a', 'node-b'], 'both peers sent something')
    assert.equal(b.name, 'node-b')
  })
}

test('a transfer goes on from the store when the way between two nodes is cut', async (context) => {
  const cut = { isCut: false, sockets: new Set<Socket>() }
  const { store, nodes } = await makeReady(context, 1, {
    // Parts that were asked for may have arrived in the kernel's memory: one at a time.
    stage: { ...SLOWLY, concurrency: 1 },
    // Nothing is refused and nothing answers: bytes just stop, both ways.
    advertise: async (node, port) =>
      node === 'node-a' ? openCuttable(context, port, cut) : `http://127.0.0.1:${port}`,
  })
  const [a, b] = nodes
  const before = store.sentBytes()
  const running = b.start('prepare', 'flowers', '--json', '--task', 'mine', ...SLOWER)
  await waitForTransfer(a, 'node-b')
  cut.isCut = true
  for (const socket of cut.sockets) socket.unpipe().pause()
  const finished = await succeeds(running.finished)
  const prepared = JSON.parse(finished.stdout)
  await assertSameFiles(prepared.path, OBJECTS)
  assert.ok(store.sentBytes() > before, 'the rest came from the store')
  assert.ok(prepared.downloaded.origins.peerBytes['node-a'] > 0, 'the beginning came from the peer')
})

test('a staging survives a restart of PostgreSQL in the middle of it', async (context) => {
  const { cluster, nodes } = await makeReady(context, 0)
  const [a, b] = nodes
  const running = b.start('prepare', 'flowers', '--json', '--task', 'mine', ...SLOWER)
  await waitForTransfer(a, 'node-b')
  await cluster.postgres.stop('immediate')
  await sleep(1500)
  await cluster.postgres.start()
  const finished = await succeeds(running.finished)
  await assertSameFiles(JSON.parse(finished.stdout).path, OBJECTS)
  const { copies } = JSON.parse((await a.dsc('status', '--json')).stdout)
  assert.deepEqual(
    copies.map(({ node, state, referenceCount }: Record<string, unknown>) => [node, state, referenceCount]),
    [['node-b', 'ready', 1]],
  )
})

test('restarts of PostgreSQL under load lose nothing: stagings, transfers and those who wait all end right', async (context) => {
  const { cluster, nodes } = await makeReady(context, 1)
  const running = nodes.flatMap((node) =>
    [1, 2, 3].map((index) => node.start('prepare', 'flowers', '--json', '--task', `${node.name} ${index}`)),
  )
  await Promise.all([waitForTransfer(nodes[0], 'node-b'), waitForTransfer(nodes[0], 'node-c')])
  for (const mode of ['immediate', 'fast', 'immediate'] as const) {
    await cluster.postgres.stop(mode)
    await sleep(500)
    await cluster.postgres.start()
    await sleep(300)
  }
  for (const { finished } of running) {
    const ended = await succeeds(finished)
    await assertSameFiles(JSON.parse(ended.stdout).path, OBJECTS)
  }
  const { copies, transfers, leases } = JSON.parse((await nodes[0].dsc('status', '--json')).stdout)
  assert.deepEqual(
    copies.map(({ node, state, referenceCount }: Record<string, unknown>) => [node, state, referenceCount]),
    [
      ['node-a', 'ready', 4],
      ['node-b', 'ready', 3],
      ['node-c', 'ready', 3],
    ],
  )
  assert.deepEqual(transfers, [])
  assert.deepEqual([...new Set(leases.map(({ purpose }: { purpose: string }) => purpose))], ['use'])
})

test('a peer that does not accept the token is named, with what to do', async (context) => {
  const { store, cluster, nodes } = await makeReady(context, 1)
  await store.close()
  const other = join(cluster.directory, 'other-token')
  await writeFile(other, 'a token that no agent knows\n')
  const settings = await readFile(nodes[1].configPath, 'utf8')
  await writeFile(nodes[1].configPath, settings.replace(/tokenFile: .*/, `tokenFile: ${other}`))
  const failed = await nodes[1].dsc('prepare', 'flowers', '--task', 'mine')
  assert.notEqual(failed.code, 0)
  assert.match(failed.stderr, /node node-a .*(does not accept the token|401)/)
  const { copies } = JSON.parse((await nodes[0].dsc('status', '--json')).stdout)
  assert.deepEqual(
    copies.map(({ node, state, referenceCount }: Record<string, unknown>) => [node, state, referenceCount]),
    [
      ['node-a', 'ready', 1],
      ['node-b', 'reserved', 0], // left, for the next prepare to go on with
    ],
  )
})

test('a node that dies while many stage side by side is named, and the others finish', async (context) => {
  const { agents, nodes } = await makeReady(context, 0)
  const [a, , c] = nodes
  const running = a.start('prepare', 'flowers', '--all', '--json', '--task', 'mine', ...SLOWER)
  await waitForTransfer(c, 'node-b')
  agents[1]!.process.kill('SIGKILL')
  const finished = await running.finished
  assert.equal(finished.code, 11, finished.stderr)
  assert.match(finished.stderr, /1 of 3 nodes failed: node node-b: its agent at/)
  const outcomes = JSON.parse(finished.stdout).nodes
  assert.deepEqual(
    outcomes.map(({ node, error }: { node: string; error?: object }) => [node, error !== undefined]),
    [
      ['node-a', false],
      ['node-b', true],
      ['node-c', false],
    ],
  )
  for (const { path } of outcomes) if (path) await assertSameFiles(path, OBJECTS)
})

test('a node whose clock is ten minutes ahead does not end the leases of others', async (context) => {
  const ahead = '--import data:text/javascript,const%20n=Date.now;Date.now=()=>n()+600000'
  const { nodes } = await makeReady(context, 0, {
    environments: { 'node-b': { NODE_OPTIONS: ahead } },
  })
  const [a, b] = nodes
  await succeeds(a.dsc('prepare', 'flowers', '--task', 'short', '--ttl', '5m'))
  assert.equal((await b.dsc('cleanup')).code, 0)
  const { copies, takenAt } = JSON.parse((await b.dsc('status', '--json')).stdout)
  assert.deepEqual(
    copies.map(({ node, referenceCount }: Record<string, unknown>) => [node, referenceCount]),
    [['node-a', 1]],
  )
  assert.ok(Math.abs(Date.parse(takenAt) - Date.now()) < 300_000, 'time is what the record says')
})

test('a node that is gone for good is named, skipped by transfers, and forgotten on demand only', async (context) => {
  const { store, agents, nodes } = await makeReady(context, 1)
  const [, b, c] = nodes
  agents[0]!.process.kill('SIGKILL')
  await agents[0]!.finished
  const prepared = await succeeds(b.dsc('prepare', 'flowers', '--json', '--task', 'mine'))
  assert.equal(JSON.parse(prepared.stdout).origin, 's3', 'the store stands in')
  assert.ok(store.sentBytes() >= 2 * store.totalBytes)
  const asked = await c.dsc('prepare', 'flowers', '--nodes', 'node-a,node-c', '--task', 'mine')
  assert.notEqual(asked.code, 0)
  assert.match(asked.stderr, /node-a/)
  const held = () =>
    c.dsc('status', '--json').then(({ stdout }) =>
      JSON.parse(stdout)
        .copies.filter(({ node }: { node: string }) => node === 'node-a')
        .map(({ referenceCount }: { referenceCount: number }) => referenceCount),
    )
  assert.deepEqual(await held(), [1], 'its copy and lease stay until somebody says otherwise')
  const refused = await c.dsc('record', 'forget-node', 'node-a')
  assert.match(refused.stderr, /node-a with 1 copy and 1 live lease\?/)
  assert.deepEqual(await held(), [1])
  assert.equal((await c.dsc('record', 'forget-node', 'node-a', '--yes')).code, 0)
  assert.deepEqual(await held(), [])
})

async function openCuttable(
  context: TestContext,
  port: number,
  cut: { isCut: boolean; sockets: Set<Socket> },
): Promise<string> {
  const server = createServer((client) => {
    const agent = connect(port, '127.0.0.1')
    for (const [from, to] of [
      [client, agent],
      [agent, client],
    ] as const) {
      cut.sockets.add(from)
      if (!cut.isCut) from.pipe(to)
      from.on('error', () => to.destroy())
      from.on('close', () => to.destroy())
    }
  })
  context.after(() => {
    for (const socket of cut.sockets) socket.destroy()
    server.close()
  })
  await listenLocally(server)
  return `http://127.0.0.1:${(server.address() as { port: number }).port}`
}
