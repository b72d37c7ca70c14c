import assert from 'node:assert/strict'
import { randomBytes, randomFillSync } from 'node:crypto'
import {
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readFileSync,
  readSync,
  statfsSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { makeCluster } from '../testing/cluster.js'
import { shareOfGivenUp } from '../testing/cluster-store.js'
import { succeeds } from '../testing/dsc-processes.js'
import { startHubServer } from '../testing/hub-server.js'
import { temporaryDirectory } from '../testing/temporary-directory.js'

/** Room for the model, or for what is there before it. */
const QUOTA_BYTES = 90_000_000

test('a repository is downloaded once for the cluster: nodes take its files from each other, also while it comes, within their quotas', async (context) => {
  const hub = await startHubServer()
  let isClosed = false
  const closeHub = async () => {
    if (!isClosed) await hub.close()
    isClosed = true
  }
  context.after(closeHub)
  const files: Record<string, Buffer> = {
    'model-00001.safetensors': randomBytes(60_000_000),
    'config.json': Buffer.from('{}'),
  }
  for (let at = 0; at < 2000; at += 1) files[`tokens/${at % 20}/${at}.txt`] = Buffer.from(`token ${at}`)
  const commit = hub.commit('models/org/model', files)
  const total = Object.values(files).reduce((sum, body) => sum + body.length, 0)
  const names = ['node-a', 'node-b', 'node-c']
  const source = await temporaryDirectory(context)
  mkdirSync(join(source, 'before'))
  writeFileSync(join(source, 'before', 'x.bin'), randomBytes(40_000_000))
  const disk = statfsSync(source)
  const cluster = await makeCluster(context, {
    nodes: names,
    cache: { maxPercent: (100 * QUOTA_BYTES) / (disk.blocks * disk.bsize) },
    datasets: {
      model: { source: 'hf://org/model', endpoint: hub.endpoint },
      before: { source: `file://${join(source, 'before')}` },
    },
  })
  const [a, , c] = cluster.nodes
  for (const node of cluster.nodes) await node.startAgent()
  const both = ['prepare', 'model', '--nodes', 'node-a,node-b', '--task', 'one', '--json']
  const { nodes } = JSON.parse((await succeeds(a!.dsc(...both))).stdout)
  assert.ok(
    hub.sentBytes <= (1.1 + shareOfGivenUp(nodes)) * total,
    `${hub.sentBytes} of ${total} bytes were read from the hub`,
  )
  await closeHub() // from here on only peers have it
  const before = await succeeds(c!.dsc('prepare', 'before', '--task', 'reads'))
  const refused = await c!.dsc('prepare', 'model', '--task', 'two')
  assert.notEqual(refused.code, 0)
  assert.match(refused.stderr, /maxPercent allows [\s\S]*before/)
  assert.ok(existsSync(join(before.stdout.trim(), 'x.bin')))
  assert.equal((await c!.dsc('release', 'before', '--task', 'reads')).code, 0)
  const late = await succeeds(c!.dsc('prepare', 'model', '--task', 'two', '--json'))
  const { path, origin, files: count, downloaded } = JSON.parse(late.stdout)
  assert.deepEqual([origin, count], ['peer', 2002])
  assert.equal(downloaded.verifiedBy['own-sha256'] ?? 0, 0)
  for (const [name, body] of Object.entries(files))
    assert.ok(readFileSync(join(path, name)).equals(body), name)
  const snapshot = join(dirname(path), 'hub/models--org--model/snapshots', commit)
  assert.equal(readFileSync(join(snapshot, 'tokens/7/7.txt'), 'utf8'), 'token 7')
  assert.equal(existsSync(before.stdout.trim()), false)
  await succeeds(c!.dsc('verify', 'model'))
})

test('three files of 2 GiB come from the node that has them, whole, while the hub is away', {
  skip:
    process.env.DSC_TEST_LARGE_MODEL === undefined &&
    'DSC_TEST_LARGE_MODEL=1 runs it: 14 GB of disk, 2 of memory',
}, async (context) => {
  const size = 2 ** 31
  const bytes = randomFillSync(Buffer.alloc(2 ** 24))
  const random = Buffer.alloc(size + 2, bytes) // each file begins a byte later
  const hub = await startHubServer()
  const files = [0, 1, 2].map(
    (at) => [`model-0000${at}.safetensors`, random.subarray(at, at + size)] as const,
  )
  hub.commit('models/org/large', Object.fromEntries(files))
  const cluster = await makeCluster(context, {
    nodes: ['node-a', 'node-b'],
    datasets: { large: { source: 'hf://org/large', endpoint: hub.endpoint } },
  })
  const [a, b] = cluster.nodes
  await a!.startAgent()
  await succeeds(a!.dsc('prepare', 'large', '--task', 'one', '--json'))
  assert.equal(hub.sentBytes, 3 * size)
  await hub.close()
  const startedMs = performance.now()
  const second = await succeeds(b!.dsc('prepare', 'large', '--task', 'two', '--json'))
  context.diagnostic(`6 GiB from a peer in ${((performance.now() - startedMs) / 1000).toFixed(1)} s`)
  const { origin, path, downloaded } = JSON.parse(second.stdout)
  assert.equal(origin, 'peer')
  assert.deepEqual(downloaded.verifiedBy, { sha256: 3 })
  for (const [name, body] of files) assertHolds(join(path, name), body)
})

/** Compares piece by piece: Node reads no file of 2 GiB at once. */
function assertHolds(path: string, body: Buffer): void {
  const descriptor = openSync(path, 'r')
  const piece = Buffer.alloc(2 ** 26)
  for (let at = 0; at < body.length; at += piece.length) {
    const count = readSync(descriptor, piece, 0, piece.length, at)
    assert.ok(piece.subarray(0, count).equals(body.subarray(at, at + piece.length)), `${path}, byte ${at}`)
  }
  closeSync(descriptor)
  assert.equal(statSync(path).size, body.length)
}
