import assert from 'node:assert/strict'
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import type { Dataset } from '../model/dataset.js'
import { type FaultProxy, startFaultProxy } from '../testing/fault-proxy.js'
import { type S3Server, startS3Server } from '../testing/s3-server.js'
import { downloadFiles } from './download-files.js'
import { listIntoManifest } from './list-into-manifest.js'
import { measureCopy } from './measure-copy.js'
import { publishCopy } from './publish-copy.js'
import { repairCopy } from './repair-copy.js'
import { openS3Source } from './sources/s3/s3-source.js'
import { verifyCopy } from './verify-copy.js'

let server: S3Server
let proxy: FaultProxy
let root: string
const signal = new AbortController().signal

before(async () => {
  server = await startS3Server()
  Object.assign(process.env, server.environment)
  proxy = await startFaultProxy(server.endpoint)
  root = mkdtempSync(join(tmpdir(), 'dsc-stage-'))
})
after(async () => {
  await proxy.close()
  await server.close()
  rmSync(root, { recursive: true, force: true })
})

function dataset(bucket: string, rest: Partial<Dataset> = {}): Dataset {
  return {
    name: 'd',
    source: `s3://${bucket}/data/`,
    endpoint: proxy.endpoint,
    region: 'us-east-1',
    pathStyle: true,
    include: [],
    exclude: [],
    ...rest,
  }
}

test('a dataset is listed, downloaded, published and verified', async () => {
  const bucket = await server.makeBucket()
  const big = Buffer.alloc(40 * 1024 * 1024, 'big')
  await server.putObject(bucket, 'data/', '')
  await server.putObject(bucket, 'data/a.txt', 'alpha')
  await server.putObject(bucket, 'data/sub dir/b+c ü.txt', 'beta')
  await server.putObject(bucket, 'data/empty', '')
  await server.putObject(bucket, 'data/big.bin', big)
  await server.putObject(bucket, 'other/x', 'not ours')
  const source = openS3Source(dataset(bucket))
  const copyDirectory = join(root, 'staging')
  const listing = await listIntoManifest({ source, dataset: dataset(bucket), copyDirectory, signal })
  assert.equal(listing.files, 4)
  assert.equal(listing.skippedFolderMarkers, 1)
  assert.equal(listing.contentBytes, big.length + 9)
  const result = await downloadFiles({ source, copyDirectory, signal })
  assert.equal(result.fetchedBytes, big.length + 9)
  assert.equal(result.verifiedBy.size, 1, 'only the empty object is proven by its size')
  const finalDirectory = join(root, 'copies', 'd', listing.version)
  await publishCopy({ copyDirectory, finalDirectory })
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
  proxy.forget()
  const repair = await repairCopy({
    source,
    copyDirectory: finalDirectory,
    benchPrefix: join(root, 'repair-'),
    damages,
    signal,
  })
  assert.deepEqual(repair, { repairedFiles: 2, fetchedBytes: 5, removedFiles: 1, failures: [] })
  assert.equal(proxy.requests.length, 1)
  assert.deepEqual((await verifyCopy({ copyDirectory: finalDirectory, signal })).damages, [])
  await source.close()
})
