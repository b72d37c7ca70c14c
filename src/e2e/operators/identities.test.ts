import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { cp, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { succeeds } from '../../testing/dsc-processes.js'
import { startPretendMachine } from '../../testing/pretend-machine.js'
import { makeWorld, type World, writeTree } from '../../testing/world.js'

/** A dataset whose source is a folder of the world. */
async function folderDataset(world: Pick<World, 'directory'>) {
  await writeTree(join(world.directory, 'scans'), { 'a.bin': 'one', 'b.bin': 'two' })
  return { scans: { source: `${pathToFileURL(join(world.directory, 'scans'))}/` } }
}

test('two cache roots under one node are refused by name, and the second has its own after another name', async (context) => {
  const first = await makeWorld(context, {})
  const datasets = await folderDataset(first)
  await first.configure({ datasets })
  assert.equal((await first.dsc('prepare', 'scans', '--task', 'a')).code, 0)
  const record = `sqlite://${first.recordPath}`
  const second = await makeWorld(context, { record, datasets })
  for (const words of [['prepare', 'scans', '--task', 'b'], ['cleanup'], ['evict', 'scans', '--yes']]) {
    const { code, stderr } = await second.dsc(...words)
    assert.equal(code, 10, stderr)
    assert.match(stderr, /node node-a is .*; here is .*/)
    assert.ok(stderr.includes(first.root) && stderr.includes(second.root), stderr)
  }
  assert.equal(existsSync(second.root), false, 'nothing is made for a node that is refused')
  await second.configure({ record, node: 'node-b', datasets })
  assert.equal((await second.dsc('prepare', 'scans', '--task', 'b')).code, 0)
  assert.equal((await first.dsc('verify', 'scans')).code, 0)
})

test('a machine that is called anew keeps its copies by claim-node', async (context) => {
  const world = await makeWorld(context, {})
  const datasets = await folderDataset(world)
  await world.configure({ datasets })
  const path = (await world.dsc('prepare', 'scans', '--task', 'a')).stdout
  await world.configure({ node: 'node-z', datasets })
  const refused = await world.dsc('prepare', 'scans', '--task', 'b')
  assert.equal(refused.code, 10, refused.stderr)
  assert.match(refused.stderr, /is node node-a in the record, not node-z/)
  await succeeds(world.dsc('record', 'claim-node', '--yes'))
  assert.equal((await world.dsc('prepare', 'scans', '--task', 'b')).stdout, path)
  assert.deepEqual(world.query('SELECT DISTINCT node FROM copies'), [{ node: 'node-z' }])
  assert.deepEqual(world.query('SELECT node FROM nodes'), [{ node: 'node-z' }])
})

test('a copied disk is refused, and becomes a node of its own by claim-node --new', async (context) => {
  const world = await makeWorld(context, {})
  const datasets = await folderDataset(world)
  await world.configure({ datasets })
  await world.dsc('prepare', 'scans', '--task', 'a')
  const record = `sqlite://${world.recordPath}`
  const clone = await makeWorld(context, { record, node: 'node-c', datasets })
  await cp(world.root, clone.root, { recursive: true })
  assert.equal((await clone.dsc('cleanup')).code, 10)
  await succeeds(clone.dsc('record', 'claim-node', '--new', '--yes'))
  assert.equal((await clone.dsc('prepare', 'scans', '--task', 'b')).code, 0)
  assert.equal((await world.dsc('prepare', 'scans', '--task', 'c')).code, 0)
  assert.deepEqual(world.query('SELECT node FROM nodes ORDER BY node'), [
    { node: 'node-a' },
    { node: 'node-c' },
  ])
})

test('a cache that was deleted on purpose begins anew', async (context) => {
  const world = await makeWorld(context, {})
  const datasets = await folderDataset(world)
  await world.configure({ datasets })
  await world.dsc('prepare', 'scans', '--task', 'a')
  execFileSync('rm', ['-rf', world.root])
  const refused = await world.dsc('cleanup')
  assert.match(refused.stderr, /dsc record claim-node/)
  assert.equal((await world.dsc('record', 'claim-node', '--yes')).code, 0)
  assert.equal((await world.dsc('cleanup')).code, 0)
  assert.equal((await world.dsc('prepare', 'scans', '--task', 'a')).code, 0)
})

test('another machine of the same name may not touch leases, copies or record of this one', async (context) => {
  const machine = await startPretendMachine(context)
  if (!machine) return context.skip('needs root and mount namespaces')
  const world = await makeWorld(context, {})
  const datasets = await folderDataset(world)
  await world.configure({ datasets })
  const script = `path=$(${world.commandLine('prepare', 'scans')}) && echo ready && sleep 600`
  await writeFile(join(world.directory, 'job.sh'), script)
  const job = machine.start(['bash', join(world.directory, 'job.sh')], world.directory)
  await job.said('ready')
  // This machine has the record, the root and the host's name in common with that one, but is another one.
  for (const words of [
    ['cleanup'],
    ['evict', 'scans', '--yes'],
    ['prepare', 'scans', '--refresh', '--task', 'x'],
  ]) {
    const { code, stderr } = await world.dsc(...words)
    assert.equal(code, 10, stderr)
  }
  await succeeds(world.dsc('record', 'claim-node', '--yes'))
  assert.equal((await world.dsc('cleanup')).code, 0)
  const leases = world.query<{ task: string }>('SELECT task FROM leases')
  assert.equal(leases.length, 1, 'only its own machine can say that the job has ended')
  assert.notEqual((await world.dsc('evict', 'scans', '--yes')).code, 0)
})
