import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { startCountingStore } from '../testing/counting-store.js'
import { STORE_KEYS } from '../testing/gateway-world.js'
import { makeShardObjects } from '../testing/shard-objects.js'
import { makeWorld, s3Dataset } from '../testing/world.js'

Object.assign(process.env, STORE_KEYS)
const COST = ['--fixed-ms', '1', '--bandwidth', '1MB/s', '--step-ms', '10']
/** A tar file without a member: two blocks of zeros. */
const NO_MEMBERS = Buffer.alloc(1024)

async function makePlan(t: TestContext, objects: ReadonlyMap<string, Buffer>) {
  const store = await startCountingStore(objects)
  t.after(() => store.close())
  const world = await makeWorld(t, { datasets: { flowers: s3Dataset('bucket', 'flowers/', store.endpoint) } })
  const plan = (...words: readonly string[]) =>
    world.dsc('feed', 'plan', 'flowers', '--cold', ...COST, ...words)
  return { plan, world }
}

function makeFiles(extension: string) {
  return new Map(Array.from({ length: 6 }, (_, id) => [`flowers/${id}.${extension}`, Buffer.alloc(1000, 1)]))
}

test('a cold plan does not say that a copy which is here is not, for it leaves it out', async (t) => {
  const { plan, world } = await makePlan(t, makeFiles('bin'))
  assert.equal((await world.dsc('prepare', 'flowers')).code, 0)
  assert.match(
    (await plan('--batch', '2')).stdout,
    /^flowers: 6 objects, 5\.86 KiB, planned as if none of it were here\n/,
  )
})

test('a cold plan of less than a batch says that there will be none, with what to do', async (t) => {
  const { plan } = await makePlan(t, makeFiles('bin'))
  const { code, stderr } = await plan('--batch', '8', '--ranks', '2')
  assert.equal(code, 0)
  assert.match(stderr, /a global batch of 16 samples.*\n {2}try: --batch 3 or less, or .*last='pad'\n/)
  assert.equal((await plan('--batch', '3', '--ranks', '2')).stderr, '')
})

test('a cold plan takes no Parquet file for a row: what an epoch of rows takes is not known yet', async (t) => {
  const { plan } = await makePlan(t, makeFiles('parquet'))
  const { stdout, stderr } = await plan('--batch', '2')
  assert.match(stdout, /first batch after .*: rows of files are fed once they are here\n/)
  assert.doesNotMatch(stdout, /first epoch/)
  assert.equal((await plan('--batch', '64')).stderr, stderr)
  const { samples, epochMs, waitMs } = JSON.parse((await plan('--batch', '2', '--json')).stdout)
  assert.deepEqual([samples, epochMs, waitMs], [null, null, null])
})

test('a cold plan of shards looks beyond those that are empty, and refuses where all are', async (t) => {
  const shards = makeShardObjects({ shards: 2, inShard: 5, lengthOf: () => 4000 })
  const { plan: some } = await makePlan(t, new Map([...shards, ['flowers/train/-.tar', NO_MEMBERS]]))
  const { samples, firstBatchMs } = JSON.parse((await some('--batch', '2', '--json')).stdout)
  assert.ok(samples >= 10 && samples < 20 && firstBatchMs > 0, `${samples} samples, ${firstBatchMs} ms`)
  const { plan } = await makePlan(t, new Map([['flowers/0.tar', NO_MEMBERS]]))
  const { code, stdout, stderr } = await plan()
  assert.deepEqual([code, stdout], [4, ''])
  assert.match(stderr, /no shard of flowers .* has a member\n {2}try: look at the first one: 0\.tar is empty/)
})

test('a cold plan takes a split as a feed does, however it is written, and names one that is not there', async (t) => {
  const { plan } = await makePlan(t, makeShardObjects({ shards: 2, inShard: 5, lengthOf: () => 4000 }))
  for (const split of ['train', 'train/', './train', '.']) {
    const { code, stderr } = await plan('--split', split, '--batch', '2')
    assert.equal(code, 0, `${split}: ${stderr}`)
  }
  const { code, stderr } = await plan('--split', 'val')
  assert.equal(code, 4)
  assert.match(stderr, /flowers has neither a folder nor files named for the split val/)
})

test('a plan of a dataset that is not here stages nothing, and says what would help', async (t) => {
  const { world } = await makePlan(t, makeFiles('bin'))
  const plan = () => world.dsc('feed', 'plan', 'flowers', '--batch', '2')
  const { code, stdout, stderr } = await plan()
  assert.deepEqual([code, stdout], [4, ''])
  assert.match(stderr, /flowers has no ready copy on node node-a.*\n {2}try: dsc prepare flowers, or --cold/)
  assert.deepEqual(world.query('SELECT 1 FROM copies'), [])
  assert.equal((await world.dsc('prepare', 'flowers')).code, 0)
  assert.equal((await plan()).code, 0)
})
