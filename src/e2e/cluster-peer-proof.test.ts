import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { chmod, mkdir, open, readFile, rm, utimes, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { type ClusterNode, makeCluster } from '../testing/cluster.js'
import { succeeds } from '../testing/dsc-processes.js'
import { temporaryDirectory } from '../testing/temporary-directory.js'

const MEBIBYTE = 1024 * 1024

/** Two nodes that stage a folder, of which the first has a copy and serves it. */
async function makeDonor(context: TestContext, files: Readonly<Record<string, Buffer>>) {
  const source = join(await temporaryDirectory(context), 'source')
  for (const [key, bytes] of Object.entries(files)) {
    await mkdir(dirname(join(source, key)), { recursive: true })
    await writeFile(join(source, key), bytes)
  }
  const datasets = { flowers: { source: `file://${source}/` } }
  const cluster = await makeCluster(context, { nodes: ['node-a', 'node-b', 'node-c'], datasets })
  const [donor, taker, third] = cluster.nodes
  await donor!.startAgent()
  const staged = await prepare(donor!)
  return { source, donor: donor!, taker: taker!, third: third!, staged }
}

async function prepare(node: ClusterNode, ...words: readonly string[]) {
  const finished = await succeeds(node.dsc('prepare', 'flowers', '--json', '--task', node.name, ...words))
  return JSON.parse(finished.stdout)
}

/** Writes other bytes into a published file without anything that its size or times would show. */
async function spoil(path: string, offset: number): Promise<void> {
  await chmod(path, 0o644)
  const file = await open(path, 'r+')
  const { atime, mtime } = await file.stat()
  const bytes = Buffer.alloc(3)
  await file.read(bytes, 0, 3, offset)
  await file.write(
    bytes.map((byte) => byte ^ 0xff),
    0,
    3,
    offset,
  )
  await file.close()
  await utimes(path, atime, mtime)
  await chmod(path, 0o444)
}

async function digestOf(path: string): Promise<string> {
  return createHash('sha256')
    .update(await readFile(path))
    .digest('hex')
}

async function damagedNodes(node: ClusterNode): Promise<readonly string[]> {
  const { stdout } = await node.dsc('history', '--json')
  const { events } = JSON.parse(stdout) as { events: { kind: string; node: string }[] }
  return events.filter(({ kind }) => kind === 'damaged').map((event) => event.node)
}

for (const { name, bytes } of [
  { name: 'in parts', bytes: 40 * MEBIBYTE },
  { name: 'in one piece', bytes: 3 * MEBIBYTE },
]) {
  test(`a donor’s spoilt file ${name} is taken from the source, and the donor’s copy is served no more`, async (context) => {
    const big = randomBytes(bytes)
    const { source, donor, taker, third, staged } = await makeDonor(context, {
      'big.bin': big,
      'small.bin': randomBytes(1000),
    })
    assert.deepEqual(staged.downloaded.verifiedBy, { 'own-sha256': 2 })
    await spoil(join(staged.path, 'big.bin'), bytes - 100)
    const taken = await prepare(taker)
    assert.equal(await digestOf(join(taken.path, 'big.bin')), await digestOf(join(source, 'big.bin')))
    assert.deepEqual(taken.downloaded.verifiedBy, { 'own-sha256': 1, sha256: 1 })
    assert.deepEqual(await damagedNodes(taker), ['node-a'])
    assert.ok(taken.downloaded.origins.storeBytes > 0, 'what was wrong came from the source')
    const next = await prepare(third)
    assert.equal(await digestOf(join(next.path, 'big.bin')), await digestOf(join(source, 'big.bin')))
    assert.equal(next.downloaded.origins.peerBytes['node-a'] ?? 0, 0, 'nobody asks the donor any more')
    await succeeds(donor.dsc('verify', 'flowers', '--repair'))
    assert.equal(await digestOf(join(staged.path, 'big.bin')), await digestOf(join(source, 'big.bin')))
  })
}

test('of many small files, one that is spoilt and one that is gone at the donor are taken from the source', async (context) => {
  const files = Object.fromEntries(
    Array.from({ length: 40 }, (_, index) => [`${index % 3}/${index}.bin`, randomBytes(1000 * index)]),
  )
  const { source, taker, staged } = await makeDonor(context, files)
  await spoil(join(staged.path, '1/22.bin'), 20_000)
  await rm(join(staged.path, '2/11.bin'))
  const taken = await prepare(taker)
  for (const key of Object.keys(files))
    assert.equal(await digestOf(join(taken.path, key)), await digestOf(join(source, key)), key)
  assert.deepEqual(await damagedNodes(taker), ['node-a'])
  assert.ok(taken.downloaded.origins.storeBytes >= 33_000, 'both came from the source')
  assert.ok(taken.downloaded.origins.peerBytes['node-a'] > 0, 'others came from the donor')
})

test('without the source, wrong bytes of a donor are refused instead of published', async (context) => {
  const { source, taker, staged } = await makeDonor(context, { 'big.bin': randomBytes(40 * MEBIBYTE) })
  await spoil(join(staged.path, 'big.bin'), 17 * MEBIBYTE)
  await rm(source, { recursive: true })
  const finished = await taker.dsc('prepare', 'flowers', '--json', '--task', 'b')
  assert.notEqual(finished.code, 0)
  assert.match(finished.stderr, /node-a/)
})
