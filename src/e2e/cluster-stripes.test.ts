import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { readdirSync, statfsSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { type ClusterNode, makeCluster } from '../testing/cluster.js'
import { makeObjects, makeStore, STORE_ENVIRONMENT } from '../testing/cluster-store.js'
import { type Running, succeeds } from '../testing/dsc-processes.js'
import { temporaryDirectory } from '../testing/temporary-directory.js'
import { waitFor } from '../testing/world.js'

const NODES = ['node-a', 'node-b', 'node-c', 'node-d']
const LAYOUT = 'node-a,node-b,node-c'
/** Of `makeObjects(10, 3)`, an object of the second stripe that is fetched in parts: held back, the stripe cannot be finished. */
const IN_SECOND_STRIPE = 'data/l1.bin'

interface Layout {
  readonly isComplete: boolean
  readonly nodes: readonly string[]
  readonly missing: readonly number[]
}

async function makeReady(
  context: TestContext,
  objects: ReadonlyMap<string, Buffer>,
  options: Partial<Parameters<typeof makeCluster>[1]> = {},
) {
  const store = await makeStore(context, objects)
  const cluster = await makeCluster(context, {
    nodes: NODES,
    datasets: store.datasets,
    environment: STORE_ENVIRONMENT,
    ...options,
  })
  const agents = new Map<string, Running>()
  for (const node of cluster.nodes) agents.set(node.name, await node.startAgent())
  const [a, b, c, d] = cluster.nodes
  return { store, cluster, agents, nodes: [a!, b!, c!, d!] as const }
}

const readStatus = async (node: ClusterNode) => JSON.parse((await node.dsc('status', '--json')).stdout)

async function readLayouts(node: ClusterNode): Promise<readonly Layout[]> {
  return (await readStatus(node)).layouts
}

/** Every file below `path` has the bytes of the store, and they are the objects i with i mod `count` = `index`. */
async function assertStripe(
  path: string,
  objects: ReadonlyMap<string, Buffer>,
  index: number,
  count: number,
) {
  const digest = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex')
  const keys = [...objects.keys()].map((key) => key.slice('data/'.length)).sort()
  const own = keys.filter((_, at) => at % count === index)
  const found = readdirSync(path, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())
  assert.deepEqual(found.map(({ name }) => name).sort(), own)
  for (const key of own) {
    assert.equal(digest(await readFile(join(path, key))), digest(objects.get(`data/${key}`)!), key)
  }
}

test('each node stages its share only, under one version, and a second prepare finds it ready', async (context) => {
  const objects = makeObjects(20, 1)
  const { store, nodes } = await makeReady(context, objects)
  const [a, b] = nodes
  const run = await succeeds(b.dsc('prepare', 'flowers', '--stripe', LAYOUT, '--json', '--task', 'mine'))
  const prepared = JSON.parse(run.stdout)
  assert.equal(prepared.path, prepared.stripes[1].path, 'the path is the share of the node that asked')
  assert.equal(prepared.files, 21)
  assert.equal(prepared.contentBytes, store.totalBytes)
  for (const { index, path } of prepared.stripes) await assertStripe(path, objects, index, 3)
  assert.equal(store.sentBytes(), store.totalBytes, 'every object was read once')
  const status = await readStatus(a)
  const shown = status.copies.map(({ node, stripe, referenceCount, version }: Record<string, unknown>) => {
    const { index, count } = stripe as { index: number; count: number }
    return [node, index, count, referenceCount, version === prepared.version]
  })
  assert.deepEqual(shown, [
    ['node-a', 0, 3, 1, true],
    ['node-b', 1, 3, 1, true],
    ['node-c', 2, 3, 1, true],
  ])
  assert.deepEqual([status.layouts[0].isComplete, status.layouts[0].missing], [true, []])
  assert.match((await a.dsc('status')).stdout, /STRIPE[\s\S]*1\/3[\s\S]*STRIPED[\s\S]*3\/3/)
  const again = await succeeds(b.dsc('prepare', 'flowers', '--stripe', LAYOUT, '--json', '--task', 'mine'))
  const origins = JSON.parse(again.stdout).stripes.map(({ origin }: { origin: string }) => origin)
  assert.deepEqual(origins, ['local', 'local', 'local'])
  assert.equal(store.sentBytes(), store.totalBytes)
})

test('a whole copy takes the files of a stripe, and serves as one', async (context) => {
  const objects = makeObjects(9, 0)
  const { store, nodes } = await makeReady(context, objects)
  const [a] = nodes
  assert.equal((await a.dsc('prepare', 'flowers', '--stripe', LAYOUT, '--task', 'mine')).code, 0)
  const before = store.sentBytes()
  const whole = await succeeds(a.dsc('prepare', 'flowers', '--json', '--task', 'mine'))
  assert.equal(JSON.parse(whole.stdout).files, 9, 'a stripe is not taken for the whole')
  const sizes = [...objects].sort(([one], [other]) => (one < other ? -1 : 1)).map(([, body]) => body.length)
  const others = sizes.filter((_, at) => at % 3 !== 0).reduce((sum, size) => sum + size, 0)
  assert.equal(store.sentBytes() - before, others, 'what the stripe has was not read again')
  // Another layout is other copies: the node that has everything serves, the others link what they have.
  const other = await succeeds(
    a.dsc('prepare', 'flowers', '--stripe', 'node-b,node-a', '--json', '--task', 'mine'),
  )
  const [first, second] = JSON.parse(other.stdout).stripes
  assert.equal(second.path, JSON.parse(whole.stdout).path)
  await assertStripe(first.path, objects, 0, 2)
  assert.equal(store.sentBytes() - before, others, 'the rest came from the node that has the whole')
})

test('a layout outlives its last stripe where whole copies stand for the others, and is repaired', async (context) => {
  const objects = makeObjects(9, 0)
  const { nodes, agents } = await makeReady(context, objects)
  const [a, b] = nodes
  for (const node of [a, b]) assert.equal((await node.dsc('prepare', 'flowers', '--task', 'mine')).code, 0)
  const prepared = await a.dsc('prepare', 'flowers', '--stripe', LAYOUT, '--json', '--task', 'mine')
  const { files, contentBytes } = JSON.parse(prepared.stdout)
  assert.deepEqual(
    [files, contentBytes],
    [9, [...objects.values()].reduce((sum, body) => sum + body.length, 0)],
  )
  agents.get('node-c')!.process.kill('SIGKILL')
  assert.equal((await a.dsc('record', 'forget-node', 'node-c', '--yes')).code, 0)
  const [broken] = await readLayouts(a)
  assert.deepEqual([broken?.isComplete, broken?.missing], [false, [2]])
  assert.match((await a.dsc('status')).stdout, /3\/3 on node-c/)
  const repaired = await succeeds(a.dsc('repair', 'flowers', '--json'))
  const { stripes, nodes: now } = JSON.parse(repaired.stdout)
  assert.deepEqual(now, ['node-a', 'node-b', 'node-d'])
  await assertStripe(stripes[0].path, objects, 2, 3)
  const after = await readLayouts(a)
  assert.deepEqual(
    after.map(({ isComplete, nodes: on }) => [isComplete, on.join()]),
    [[true, 'node-a,node-b,node-d']],
  )
  const leases = (await readStatus(a)).leases as { task: string; node: string }[]
  assert.ok(
    leases.some(({ task, node }) => task === 'mine' && node === 'node-d'),
    'held by who holds the others',
  )
})

test('a dataset that no disk may hold is staged in stripes, and when one node has no room none fetches', async (context) => {
  const objects = makeObjects(60, 0) // 6 MB; a copy also reserves 8 MiB for its manifest
  const disk = statfsSync(tmpdir())
  const maxPercent = (13_500_000 / (disk.blocks * disk.bsize)) * 100
  const { store, nodes } = await makeReady(context, objects, { cache: { maxPercent } })
  const [a, b, c, d] = nodes
  const whole = await a.dsc('prepare', 'flowers', '--task', 'mine')
  assert.equal(whole.code, 5, whole.stderr)
  const folder = await temporaryDirectory(context)
  await writeFile(join(folder, 'other.bin'), Buffer.alloc(3_500_000))
  await succeeds(c.dsc('prepare', `file://${folder}/`, '--task', 'other'))
  const refused = await a.dsc('prepare', 'flowers', '--stripe', LAYOUT, '--task', 'mine')
  assert.equal(refused.code, 5, refused.stderr)
  assert.match(refused.stderr, /node node-c: .*maxPercent allows [\s\S]*nothing was fetched on any node/)
  assert.doesNotMatch(refused.stderr, /node node-a:|node node-b:/)
  const left = (await readStatus(d)).copies.filter(
    ({ dataset }: { dataset: string }) => dataset === 'flowers',
  )
  assert.deepEqual(left, [], 'the reservations of the others are gone')
  assert.equal(store.sentBytes(), 0)
  for (const node of [a, b]) assert.deepEqual(readdirSync(join(node.root, 'staging')), [])
  const elsewhere = 'node-a,node-b,node-d'
  const run = await succeeds(a.dsc('prepare', 'flowers', '--stripe', elsewhere, '--json', '--task', 'mine'))
  for (const { index, path } of JSON.parse(run.stdout).stripes) await assertStripe(path, objects, index, 3)
})

test('an agent that is killed while it stages a stripe is named, and the same command finishes it', async (context) => {
  const objects = makeObjects(10, 3)
  const { store, nodes, agents } = await makeReady(context, objects)
  const [a, b] = nodes
  const goOn = store.holdBack(IN_SECOND_STRIPE)
  const running = a.start('prepare', 'flowers', '--stripe', LAYOUT, '--task', 'mine')
  await waitFor('bytes of a stripe on node-b', async () => {
    const { copies } = await readStatus(a)
    return copies.some(
      ({ node, writtenBytes }: { node: string; writtenBytes: number }) =>
        node === 'node-b' && writtenBytes > 0,
    )
  })
  agents.get('node-b')!.process.kill('SIGKILL')
  goOn()
  const failed = await running.finished
  assert.equal(failed.code, 11, failed.stderr)
  assert.match(failed.stderr, /1 of 3 nodes failed: node node-b/)
  assert.deepEqual((await readLayouts(a))[0]!.isComplete, false)
  await b.startAgent()
  const before = store.sentBytes()
  const again = await succeeds(a.dsc('prepare', 'flowers', '--stripe', LAYOUT, '--json', '--task', 'mine'))
  for (const { index, path } of JSON.parse(again.stdout).stripes) await assertStripe(path, objects, index, 3)
  const sizes = [...objects].sort(([one], [other]) => (one < other ? -1 : 1)).map(([, body]) => body.length)
  const own = sizes.filter((_, at) => at % 3 === 1).reduce((sum, size) => sum + size, 0)
  assert.ok(store.sentBytes() - before <= own, 'only the stripe that was not finished was read')
  assert.equal((await readLayouts(a))[0]!.isComplete, true)
})

test('a lost node leaves the layout incomplete until a repair, which may be killed and repeated', async (context) => {
  const objects = makeObjects(10, 3)
  const { store, nodes, agents } = await makeReady(context, objects)
  const [a, , , d] = nodes
  await succeeds(a.dsc('prepare', 'flowers', '--stripe', LAYOUT, '--task', 'mine'))
  agents.get('node-b')!.process.kill('SIGKILL')
  assert.equal((await a.dsc('record', 'forget-node', 'node-b', '--yes')).code, 0)
  const [broken] = await readLayouts(a)
  assert.deepEqual([broken!.isComplete, broken!.missing], [false, [1]])
  assert.match((await a.dsc('status')).stdout, /2\/3 on node-b/)
  assert.match(
    (await a.dsc('why', 'flowers')).stdout,
    /2 of 3 stripes, 2\/3 on node-b is missing; dsc repair/,
  )
  const dry = await a.dsc('repair', 'flowers', '--dry-run')
  assert.match(dry.stdout, /would fetch 2\/3 on node-d, in the place of node-b/)
  assert.deepEqual(await readLayouts(a), [broken], 'nothing was changed')
  const goOn = store.holdBack(IN_SECOND_STRIPE)
  const running = a.start('repair', 'flowers')
  await waitFor('bytes of the stripe on node-d', async () => {
    const { copies } = await readStatus(a)
    return copies.some(
      ({ node, writtenBytes }: { node: string; writtenBytes: number }) =>
        node === 'node-d' && writtenBytes > 0,
    )
  })
  running.process.kill('SIGKILL')
  agents.get('node-d')!.process.kill('SIGKILL')
  await running.finished
  await agents.get('node-d')!.finished
  goOn()
  await d.startAgent()
  const repaired = await succeeds(a.dsc('repair', 'flowers', '--json'))
  const { stripes, nodes: now } = JSON.parse(repaired.stdout)
  assert.deepEqual(now, ['node-a', 'node-d', 'node-c'])
  await assertStripe(stripes[0].path, objects, 1, 3)
  const status = await readStatus(a)
  assert.deepEqual(
    status.layouts.map(({ nodes: of, isComplete }: Layout) => [of, isComplete]),
    [[['node-a', 'node-d', 'node-c'], true]],
  )
  assert.deepEqual(
    status.leases
      .filter(({ task }: { task: string }) => !task.startsWith('dsc repair')) // of the one that was killed
      .map(({ node, task }: { node: string; task: string }) => [node, task])
      .toSorted(),
    [
      ['node-a', 'mine'],
      ['node-c', 'mine'],
      ['node-d', 'mine'],
    ],
    'the task holds the repaired stripe, too',
  )
  const again = await succeeds(a.dsc('repair', 'flowers'))
  assert.match(again.stdout, /3 of 3 stripes/)
  const same = await a.dsc('prepare', 'flowers', '--stripe', now.join(','), '--json', '--task', 'mine')
  assert.ok(JSON.parse(same.stdout).stripes.every(({ origin }: { origin: string }) => origin === 'local'))
})

test('an evicted stripe is missing, and comes back on its own node in the same version', async (context) => {
  const objects = makeObjects(9, 0)
  const staged = new Map(objects)
  const { nodes } = await makeReady(context, objects)
  const [a, , c] = nodes
  assert.equal((await a.dsc('prepare', 'flowers', '--stripe', LAYOUT, '--task', 'mine')).code, 0)
  const held = await c.dsc('evict', 'flowers', '--yes')
  assert.notEqual(held.code, 0, 'a leased stripe stays')
  assert.equal((await a.dsc('release', 'flowers', '--task', 'mine', '--any-node')).code, 0)
  assert.equal((await c.dsc('evict', 'flowers', '--yes')).code, 0)
  assert.deepEqual((await readLayouts(a))[0]!.missing, [2])
  // The source has a new object by now: the stripe must come back as it was, not as the source is.
  objects.set('data/new.bin', Buffer.from('new'))
  const repaired = await succeeds(a.dsc('repair', 'flowers', '--json'))
  await assertStripe(JSON.parse(repaired.stdout).stripes[0].path, staged, 2, 3)
  assert.equal((await readLayouts(a))[0]!.isComplete, true)
})
