import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { SOURCE_CHECKSUMS } from '../../model/manifest.js'
import { createDigest, type DigestAlgorithm } from '../../proof/digest.js'
import { type SourceBench, startSourceBench } from '../../testing/source-bench.js'
import { downloadFiles } from './download-files.js'
import { listIntoManifest } from './list-into-manifest.js'

const signal = new AbortController().signal
const MIB = 1024 * 1024
let bench: SourceBench
before(async () => {
  bench = await startSourceBench()
})
after(() => bench.close())

function base64(algorithm: DigestAlgorithm, ...bodies: Uint8Array[]): string {
  const digest = createDigest(algorithm)
  for (const body of bodies) digest.update(body)
  return digest.finish().toString('base64')
}

/** No checksums but those that a test adds. */
const NONE = Object.fromEntries(
  [...SOURCE_CHECKSUMS, 'type'].map((name): [string, null] => [`x-amz-checksum-${name}`, null]),
)

async function download(objects: Record<string, Buffer>, added: Record<string, string | null>) {
  const headers = { ...NONE, ...added }
  const from = await bench.makeSource(objects)
  // s3rver keeps no checksums, other servers always crc64nvme: the proxy sends the ones that the test wants.
  bench.proxy.setRules([{ match: '^(GET|HEAD) /[^/]+/data/', fault: { kind: 'headers', headers } }])
  const copyDirectory = bench.makePath('copy')
  await listIntoManifest({ ...from, copyDirectory, signal })
  const downloaded = await downloadFiles({ ...from, copyDirectory, signal })
  for (const [key, body] of Object.entries(objects))
    assert.ok(readFileSync(join(copyDirectory, 'files', key)).equals(body))
  return downloaded
}

const small = Buffer.from('a small object')
const large = Buffer.alloc(40 * MIB, 'large')

for (const algorithm of ['crc32', 'crc32c', 'crc64nvme', 'sha1', 'sha256'] as const) {
  const header = `x-amz-checksum-${algorithm}`
  test(`a small object is proven by ${header}`, async () => {
    const { verifiedBy } = await download({ a: small }, { [header]: base64(algorithm, small) })
    assert.deepEqual(verifiedBy, { [algorithm]: 1 })
  })

  test(`a wrong ${header} is CHECKSUM_MISMATCH`, async () => {
    const headers = { [header]: base64(algorithm, Buffer.from('other')) }
    await assert.rejects(download({ a: small }, headers), { code: 'CHECKSUM_MISMATCH' })
  })
}

for (const algorithm of ['crc64nvme', 'sha256'] as const) {
  const header = `x-amz-checksum-${algorithm}`
  test(`an object in several parts is proven by ${header} of the whole`, async () => {
    const headers = { [header]: base64(algorithm, large), 'x-amz-checksum-type': 'FULL_OBJECT' }
    assert.deepEqual((await download({ large }, headers)).verifiedBy, { [algorithm]: 1 })
  })
}

test('a wrong checksum of an object in several parts is CHECKSUM_MISMATCH after it was fetched again', async () => {
  const headers = { 'x-amz-checksum-crc32': base64('crc32', small) }
  await assert.rejects(download({ large }, headers), { code: 'CHECKSUM_MISMATCH' })
  assert.equal(bench.proxy.count(/data\/large bytes=/), 9)
})

for (const { name, sizeBytes, partBytes, proof } of [
  { name: 'a small object', sizeBytes: 12 * MIB, partBytes: 5 * MIB, proof: 'etag-md5' },
  { name: 'a large object', sizeBytes: 40 * MIB, partBytes: 8 * MIB, proof: 'etag-md5' },
]) {
  test(`${name} uploaded in parts is proven by its multipart etag`, async () => {
    const body = Buffer.alloc(sizeBytes, 'multipart')
    const from = await bench.makeSource({})
    await bench.server.putInParts(from.bucket, 'data/parts', body, partBytes)
    bench.proxy.setRules([
      { match: 'GET /.*data/parts', fault: { kind: 'flip', atByte: 77 }, times: 1 },
      { match: '/data/parts', fault: { kind: 'headers', headers: NONE } },
    ])
    const copyDirectory = bench.makePath('copy')
    await listIntoManifest({ ...from, copyDirectory, signal })
    const { verifiedBy } = await downloadFiles({ ...from, copyDirectory, signal })
    assert.deepEqual(verifiedBy, { [proof]: 1 })
    assert.ok(readFileSync(join(copyDirectory, 'files/parts')).equals(body))
  })
}

test('an encrypted object is not checked against its etag, which is no MD5', async () => {
  const headers = { 'x-amz-server-side-encryption': 'aws:kms' }
  assert.deepEqual((await download({ a: small }, headers)).verifiedBy, { 'own-sha256': 1 })
})
