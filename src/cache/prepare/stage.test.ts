import assert from 'node:assert/strict'
import { chmodSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { HeldFolder } from '../../platform/held-folder.js'
import { startSourceBench } from '../../testing/source-bench.js'
import { downloadFiles } from '../download/download-files.js'
import { listIntoManifest } from '../download/list-into-manifest.js'
import { measureCopy } from '../download/measure-copy.js'
import { publishCopy } from '../download/publish-copy.js'
import { repairCopy } from '../upkeep/repair-copy.js'
import { verifyCopy } from '../upkeep/verify-copy.js'

const bench = await startSourceBench()
after(() => bench.close())
const { signal } = new AbortController()

test('a dataset is listed, downloaded, published and verified', async () => {
  const big = Buffer.alloc(40 * 1024 * 1024, 'big')
  const objects = { '': '', 'a.txt': 'alpha', 'sub dir/b+c ü.txt': 'beta', empty: '', 'big.bin': big }
  const { source, dataset, bucket } = await bench.makeSource(objects)
  await bench.server.putObject(bucket, 'other/x', 'not ours')
  const copyDirectory = bench.makePath('staging')
  const listing = await listIntoManifest({ source, dataset, copyDirectory, signal })
  assert.equal(listing.files, 4)
  assert.equal(listing.skippedFolderMarkers, 1)
  assert.equal(listing.contentBytes, big.length + 9)
  const result = await downloadFiles({ source, copyDirectory, signal })
  assert.equal(result.fetchedBytes, big.length + 9)
  assert.equal(result.verifiedBy.size, 1, 'only the empty object is proven by its size')
  const finalDirectory = join(bench.makePath('copies'), listing.version)
  await publishCopy({ root: '/', copyDirectory, finalDirectory })
  assert.deepEqual(readdirSync(finalDirectory).sort(), ['files', 'manifest.db'])
  assert.equal(readFileSync(join(finalDirectory, 'files/sub dir/b+c ü.txt'), 'utf8'), 'beta')
  assert.ok(readFileSync(join(finalDirectory, 'files/big.bin')).equals(big))
  assert.equal(statSync(join(finalDirectory, 'files/big.bin')).mode & 0o777, 0o444)
  const measured = await measureCopy(finalDirectory)
  assert.ok(measured.diskBytes <= listing.neededBytes, `${measured.diskBytes} > ${listing.neededBytes}`)
  assert.ok(measured.inodes <= listing.neededInodes)
  assert.deepEqual((await verifyCopy({ copyDirectory: finalDirectory, signal })).damages, [])
  chmodSync(join(finalDirectory, 'files/a.txt'), 0o644)
  writeFileSync(join(finalDirectory, 'files/a.txt'), 'alphb')
  rmSync(join(finalDirectory, 'files/empty'))
  writeFileSync(join(finalDirectory, 'files/extra'), '')
  const { damages } = await verifyCopy({ copyDirectory: finalDirectory, signal })
  assert.deepEqual(
    damages.map(({ path, problem }) => `${path} ${problem}`),
    ['a.txt content', 'empty missing', 'extra unexpected'],
  )
  bench.proxy.forget()
  const hold = (path: string) => HeldFolder.find(path)!
  const drafts = bench.makePath('repair')
  mkdirSync(drafts)
  const folders = {
    directory: hold(finalDirectory),
    files: hold(join(finalDirectory, 'files')),
    bench: hold(drafts),
  }
  const repair = await repairCopy({ source, ...folders, damages, signal })
  for (const folder of Object.values(folders)) folder.close()
  assert.deepEqual(repair, { repairedFiles: 2, fetchedBytes: 5, removedFiles: 1, failures: [] })
  assert.equal(bench.proxy.requests.length, 1)
  assert.deepEqual((await verifyCopy({ copyDirectory: finalDirectory, signal })).damages, [])
})
