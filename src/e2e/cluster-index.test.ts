import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { type ClusterNode, makeCluster } from '../testing/cluster.js'
import { succeeds } from '../testing/dsc-processes.js'
import { PARQUET_FIXTURES } from '../testing/parquet-files.js'
import { temporaryDirectory } from '../testing/temporary-directory.js'

test('the list of samples of a version is made once for the cluster, whatever its format, and kept for all users', async (context) => {
  const source = await temporaryDirectory(context)
  mkdirSync(join(source, 'lines'))
  for (const file of [0, 1])
    writeFileSync(join(source, 'lines', `${file}.jsonl`), `{"text":"a${file}"}\n{"text":"b"}\n`)
  mkdirSync(join(source, 'table'))
  writeFileSync(join(source, 'table', 'a.csv'), 'text,label\nx,1\ny,2\n')
  mkdirSync(join(source, 'shards'))
  spawnSync('tar', ['-cf', join(source, 'shards', 'a.tar'), '-C', join(source, 'lines'), '.'])
  const names = ['lines', 'table', 'shards', 'mds', 'litdata']
  for (const name of ['mds', 'litdata'])
    cpSync(join(process.cwd(), 'fixtures/formats', name), join(source, name), { recursive: true })
  const cluster = await makeCluster(context, {
    nodes: ['node-a', 'node-b'],
    datasets: Object.fromEntries(names.map((name) => [name, { source: `file://${join(source, name)}` }])),
  })
  const [a, b] = cluster.nodes
  const agent = await a!.startAgent()
  const index = async (node: ClusterNode, name: string) => {
    const { stdout } = await succeeds(node.dsc('feed', 'index', name, '--json'))
    const { isListedBefore, fingerprint, samples } = JSON.parse(stdout)
    return { isListedBefore, made: { fingerprint, samples } }
  }
  const made = new Map<string, unknown>()
  for (const name of names) {
    const first = await index(a!, name)
    assert.equal(first.isListedBefore, false, name)
    made.set(name, first.made)
  }
  for (const name of names)
    assert.deepEqual(await index(b!, name), { isListedBefore: true, made: made.get(name) })
  agent.process.kill()
  await agent.finished
  const forgetOwn = () => rmSync(join(cluster.directory, 'node-b', 'dsc'), { recursive: true })
  forgetOwn() // as another user of the node
  for (const name of names)
    assert.deepEqual(await index(b!, name), { isListedBefore: true, made: made.get(name) })
  forgetOwn()
  const kept = join(b!.root, 'samples')
  for (const name of readdirSync(kept)) writeFileSync(join(kept, name), 'damaged')
  for (const name of names)
    assert.deepEqual(await index(b!, name), { isListedBefore: false, made: made.get(name) })
})

test('lengths of rows that are read in row groups are measured once for the cluster, for each choice of columns', async (context) => {
  const source = await temporaryDirectory(context)
  cpSync(join(PARQUET_FIXTURES, 'groups.parquet'), join(source, 'groups.parquet'))
  const cluster = await makeCluster(context, {
    nodes: ['node-a', 'node-b'],
    datasets: { rows: { source: `file://${source}` } },
  })
  const [a, b] = cluster.nodes
  const agent = await a!.startAgent()
  const read = async (node: ClusterNode, ...more: readonly string[]) => {
    const words = ['feed', 'bench', 'rows', '--order', 'groups-4', '--epochs', '1', '--batch', '1', ...more]
    const { stdout, stderr } = await succeeds(node.dsc(...words))
    assert.match(stdout, /epoch/)
    return { isMeasured: /rows were measured/.test(stderr) }
  }
  assert.deepEqual(await read(a!), { isMeasured: true })
  assert.deepEqual(await read(b!), { isMeasured: false })
  assert.deepEqual(await read(b!, '--columns', 'text'), { isMeasured: true })
  agent.process.kill()
  await agent.finished
  rmSync(join(cluster.directory, 'node-b', 'dsc'), { recursive: true }) // as another user of the node
  assert.deepEqual(await read(b!), { isMeasured: false })
  const kept = join(b!.root, 'samples')
  for (const name of readdirSync(kept)) writeFileSync(join(kept, name), 'damaged')
  assert.deepEqual(await read(b!), { isMeasured: true })
})
