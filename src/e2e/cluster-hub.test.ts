import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { makeCluster } from '../testing/cluster.js'
import { startHubServer } from '../testing/hub-server.js'

test('a repository is downloaded once for the cluster: nodes take its files from each other, also while it comes', async (context) => {
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
  const cluster = await makeCluster(context, {
    nodes: names,
    datasets: { model: { source: 'hf://org/model', endpoint: hub.endpoint } },
  })
  const [a, , c] = cluster.nodes
  for (const node of cluster.nodes) await node.startAgent()
  const both = await a!.dsc('prepare', 'model', '--nodes', 'node-a,node-b', '--task', 'one', '--json')
  assert.equal(both.code, 0, both.stderr)
  assert.ok(hub.sentBytes <= 1.1 * total, `${hub.sentBytes} of ${total} bytes were read from the hub`)
  await closeHub() // from here on only peers have it
  const late = await c!.dsc('prepare', 'model', '--task', 'two', '--json')
  assert.equal(late.code, 0, late.stderr)
  const { path, origin, files: count, downloaded } = JSON.parse(late.stdout)
  assert.deepEqual([origin, count], ['peer', 2002])
  assert.equal(downloaded.verifiedBy['own-sha256'] ?? 0, 0)
  for (const [name, body] of Object.entries(files))
    assert.ok(readFileSync(join(path, name)).equals(body), name)
  const snapshot = join(dirname(path), 'hub/models--org--model/snapshots', commit)
  assert.equal(readFileSync(join(snapshot, 'tokens/7/7.txt'), 'utf8'), 'token 7')
  const verified = await c!.dsc('verify', 'model')
  assert.equal(verified.code, 0, verified.stderr)
})
