import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { chmod, open, readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import Database from 'better-sqlite3'
import { makeCluster } from '../testing/cluster.js'
import { assertSameFiles, makeObjects, makeStore, STORE_ENVIRONMENT } from '../testing/cluster-store.js'
import { succeeds } from '../testing/dsc-processes.js'

/** Bytes of a part: as nodes that share parts plan them for a dataset of this size. */
const PART_BYTES = 1024 * 1024
const SPOILT_AT = 5000

/** Changes a file of a copy and what its manifest says of it, as its node's user or a bad restore could. */
async function forge(files: string, key: string): Promise<void> {
  const path = join(files, key)
  await chmod(path, 0o644)
  const file = await open(path, 'r+')
  await file.write('EVIL', SPOILT_AT)
  await file.close()
  const digest = (bytes: Uint8Array) => `sha256:${createHash('sha256').update(bytes).digest('base64')}`
  const bytes = await readFile(path)
  await chmod(dirname(files), 0o755)
  await chmod(join(dirname(files), 'manifest.db'), 0o644)
  const manifest = new Database(join(dirname(files), 'manifest.db'))
  manifest
    .prepare('update object set digest = ?, facts = null, verified_by = ? where key = ?')
    .run(digest(bytes), 'sha256', key)
  manifest
    .prepare(
      'update part set digest = ?, proof = null where number = 0 and object_id = (select id from object where key = ?)',
    )
    .run(digest(bytes.subarray(0, PART_BYTES)), key)
  manifest.close()
}

for (const { name, options, verifiedBy } of [
  { name: 'etags that are MD5', options: {}, verifiedBy: { 'etag-md5': 4 } },
  {
    name: 'checksums beside etags that are not MD5 sums',
    options: { hasChecksums: true, isKmsEncrypted: true },
    verifiedBy: { crc32: 4 },
  },
]) {
  test(`what a node changed together with its digest is taken from a store that has ${name}`, async (context) => {
    const objects = makeObjects(3, 1)
    const store = await makeStore(context, objects, options)
    const cluster = await makeCluster(context, {
      nodes: ['node-a', 'node-b'],
      datasets: store.datasets,
      environment: STORE_ENVIRONMENT,
    })
    const [liar, taker] = cluster.nodes
    await liar!.startAgent()
    const staged = await succeeds(liar!.dsc('prepare', 'flowers', '--json', '--task', 'a'))
    const { path } = JSON.parse(staged.stdout)
    for (const key of ['s1.bin', 'l0.bin']) await forge(path, key)
    const before = store.sentBytes()
    const taken = await succeeds(taker!.dsc('prepare', 'flowers', '--json', '--task', 'b'))
    const prepared = JSON.parse(taken.stdout)
    await assertSameFiles(prepared.path, objects)
    assert.deepEqual(prepared.downloaded.verifiedBy, verifiedBy)
    assert.ok(prepared.downloaded.origins.peerBytes['node-a'] > 200_000, 'what was right came from the node')
    assert.ok(
      store.sentBytes() - before >= objects.get('data/l0.bin')!.length,
      'what was wrong came from the store',
    )
  })
}
