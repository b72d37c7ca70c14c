import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdirSync, truncateSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { makeTestFolder, writeSamples } from '../../testing/sample-folder.js'
import { listFolder } from '../list-folder.js'
import { indexShardsAs } from './index-shards.js'
import { countIndexThreads, groupBySize, indexTarInThreads } from './index-tar-in-threads.js'

const SHARDS = 7

/** Makes shards of unlike sizes; with `isPaired`, every sample of the last one has two members. */
async function makeShards(context: TestContext, { isPaired = false } = {}) {
  const folder = makeTestFolder(context)
  const root = join(folder, 'shards')
  mkdirSync(root)
  for (let shard = 0; shard < SHARDS; shard++) {
    const from = join(folder, `${shard}`)
    writeSamples(from, 5 + 40 * (shard % 3), (id) => 100 + ((id * 37) % 900))
    execFileSync('tar', ['-cf', join(root, `${shard}.tar`), '--sort=name', '-C', from, '.'])
  }
  if (isPaired) {
    const from = join(folder, 'pairs')
    mkdirSync(from)
    execFileSync('touch', ['a.jpg', 'a.cls', 'b.jpg', 'b.cls'], { cwd: from })
    execFileSync('tar', ['-cf', join(root, `${SHARDS - 1}.tar`), '--sort=name', '-C', from, '.'])
  }
  const { files } = await listFolder(root, 'follow')
  return { root, request: { root, files: files.list(), onDamage: 'raise' as const } }
}

test('several threads find the table that one finds, byte by byte', async (context) => {
  const { request } = await makeShards(context)
  const alone = indexShardsAs('member', request)
  const seen: number[] = []
  const onProgress = (done: number) => void seen.push(done)
  const together = await indexTarInThreads('member', { ...request, onProgress }, 3)
  assert.deepEqual(Buffer.from(together!.table.bytes), Buffer.from(alone.table.bytes))
  assert.match(together!.table.fingerprint, /^[0-9a-f]{64}$/)
  assert.deepEqual(seen, [1, 2, 3, 4, 5, 6, 7])
})

test('one shard whose samples have several members decides for all, whichever thread has it', async (context) => {
  const { request } = await makeShards(context, { isPaired: true })
  assert.equal(await indexTarInThreads('member', request, 3), undefined)
  const together = await indexTarInThreads('tar', request, 3)
  const alone = indexShardsAs('tar', request)
  assert.deepEqual(Buffer.from(together!.table.bytes), Buffer.from(alone.table.bytes))
})

test('a damaged shard is an error that names it, or is told and left out, in threads, too', async (context) => {
  const { root, request } = await makeShards(context)
  truncateSync(join(root, '4.tar'), 2048)
  await assert.rejects(indexTarInThreads('member', request, 2), {
    code: 'COPY_DAMAGED',
    message: /^4\.tar is/,
  })
  const skipping = { ...request, onDamage: 'skip' as const }
  const together = await indexTarInThreads('member', skipping, 2)
  const alone = indexShardsAs('member', skipping)
  assert.deepEqual(together!.damaged, alone.damaged)
  assert.deepEqual(Buffer.from(together!.table.bytes), Buffer.from(alone.table.bytes))
})

test('groups of shards keep their order and have about as many bytes', () => {
  const files = [1, 1, 1, 9, 1, 1, 1, 1].map((size, i) => ({ path: `${i}`, size, mtimeMs: 0 }))
  const groups = groupBySize(files, 4)
  assert.deepEqual(groups.flat(), files)
  assert.deepEqual(
    groups.map((group) => group.map(({ size }) => size)),
    [[1, 1, 1], [9], [1, 1, 1, 1]],
  )
})

test('little is indexed without threads, and one shard by one', () => {
  const file = (size: number) => ({ path: 'a', size, mtimeMs: 0 })
  assert.ok(countIndexThreads([file(1000), file(1000)]) <= 1)
  assert.equal(countIndexThreads([file(2 ** 40)]), 1)
})
