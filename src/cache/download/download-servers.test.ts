import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import type { FaultRule } from '../../testing/fault-proxy.js'
import { type SourceBench, startSourceBench } from '../../testing/source-bench.js'
import { type DownloadProgress, downloadFiles } from './download-files.js'
import { listIntoManifest } from './list-into-manifest.js'

// Servers and networks as they are: each behavior was seen in a product that people use.
const signal = new AbortController().signal
const MIB = 1024 * 1024
let bench: SourceBench
before(async () => {
  bench = await startSourceBench()
})
after(() => bench.close())

async function download(body: Buffer, rules: readonly FaultRule[], stallTimeoutMs = 30_000) {
  const from = await bench.makeSource({ a: body })
  bench.proxy.setRules(rules)
  const copyDirectory = bench.makePath('copy')
  await listIntoManifest({ ...from, copyDirectory, signal })
  const written: number[] = []
  const onProgress = ({ writtenBytes }: DownloadProgress) => void written.push(writtenBytes)
  const downloaded = await downloadFiles({ ...from, copyDirectory, stallTimeoutMs, onProgress, signal })
  assert.ok(readFileSync(join(copyDirectory, 'files/a')).equals(body))
  return { downloaded, written }
}

for (const kind of ['call-it-200', 'ignore-range'] as const) {
  test(`a server that answers a range with 200 is read (${kind})`, async () => {
    const body = randomBytes(40 * MIB)
    const { downloaded } = await download(body, [{ match: 'GET .*/data/a bytes=', fault: { kind } }])
    assert.equal(downloaded.fetchedBytes, body.length)
    const ways = Object.keys(downloaded.verifiedBy) // by what the store has: MD5, or CRC-64 of its own accord
    assert.ok(ways.length === 1 && ['etag-md5', 'crc64nvme'].includes(ways[0]!), ways.join())
  })
}

test('a server that does not tell the size with a range is read', async () => {
  const body = randomBytes(40 * MIB)
  const rules = [0, 1, 2].map((part): FaultRule => {
    const range = `${part * 16 * MIB}-${Math.min(body.length, (part + 1) * 16 * MIB) - 1}`
    const headers = { 'content-range': `bytes ${range}/*` }
    return { match: `GET .*/data/a bytes=${range}`, fault: { kind: 'headers', headers } }
  })
  assert.equal((await download(body, rules)).downloaded.retries, 0)
})

test('a server that ignores ranges is asked for a large object once, not for each of its parts', async () => {
  const body = randomBytes(100 * MIB)
  await download(body, [
    { match: 'GET .*/data/a bytes=', fault: { kind: 'ignore-range' } },
    { match: 'HEAD .*/data/a', fault: { kind: 'headers', headers: { 'accept-ranges': null } } },
  ])
  assert.ok(bench.proxy.sentBytes < 1.5 * body.length, `${bench.proxy.sentBytes} bytes were sent`)
})

for (const sizeBytes of [10 * MIB, 40 * MIB]) {
  test(`a stall of an object of ${sizeBytes / MIB} MiB costs no byte twice, and progress never goes back`, async () => {
    const body = randomBytes(sizeBytes)
    const afterBytes = 7 * MIB
    const rule: FaultRule = { match: 'GET .*/data/a', fault: { kind: 'stall', afterBytes }, times: 1 }
    const { downloaded, written } = await download(body, [rule], 4000)
    assert.equal(downloaded.retries, 1)
    assert.ok(bench.proxy.sentBytes < sizeBytes + MIB, `${bench.proxy.sentBytes} bytes were sent`)
    assert.deepEqual(
      written,
      written.toSorted((a, b) => a - b),
    )
    assert.equal(written.at(-1), sizeBytes)
  })
}

test('an object that is replaced while its reader waits for the rest is not mixed from two', async () => {
  const body = randomBytes(3 * MIB)
  const from = await bench.makeSource({ a: body })
  let requests = 0
  bench.proxy.setRules([{ match: 'GET .*/data/a', fault: { kind: 'truncate', afterBytes: MIB }, times: 1 }])
  bench.proxy.onRequest(async (line) => {
    if (!line.includes(`${from.bucket}/data/a`)) return
    requests += 1
    if (requests === 2) await bench.server.putObject(from.bucket, 'data/a', randomBytes(3 * MIB))
  })
  const copyDirectory = bench.makePath('copy')
  await listIntoManifest({ ...from, copyDirectory, signal })
  await assert.rejects(downloadFiles({ ...from, copyDirectory, signal }), { code: 'SOURCE_CHANGED' })
})

test('a part that answers with an etag of its own still tells the size of the upload’s parts', async () => {
  const body = randomBytes(42 * MIB)
  const from = await bench.makeSource({})
  await bench.server.putInParts(from.bucket, 'data/parts', body, 7 * MIB)
  bench.proxy.setRules([
    {
      match: 'HEAD .*data/parts.*partNumber=1',
      fault: {
        kind: 'headers',
        headers: { etag: '"00000000000000000000000000000000"', 'content-length': String(7 * MIB) },
      },
    },
  ])
  const copyDirectory = bench.makePath('copy')
  await listIntoManifest({ ...from, copyDirectory, signal })
  const { verifiedBy } = await downloadFiles({ ...from, copyDirectory, signal })
  assert.equal(verifiedBy['own-sha256'] ?? 0, 0, 'what the server has proves it')
  assert.ok(readFileSync(join(copyDirectory, 'files/parts')).equals(body))
})

test('a listing that stalls fails as soon as any other request', async () => {
  const from = await bench.makeSource({ a: 'alpha' })
  bench.proxy.setRules([{ match: 'list-type', fault: { kind: 'stall', afterBytes: -1 } }])
  const copyDirectory = bench.makePath('copy')
  await assert.rejects(listIntoManifest({ ...from, copyDirectory, stallTimeoutMs: 200, signal }), {
    code: 'SOURCE_STALLED',
    message: /no byte from .* for 0\.2 s/,
  })
})
