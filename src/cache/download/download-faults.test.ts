import assert from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, beforeEach, test } from 'node:test'
import { isDscError } from '../../failure/dsc-error.js'
import type { Fault } from '../../testing/fault-proxy.js'
import { type BenchSource, type SourceBench, startSourceBench } from '../../testing/source-bench.js'
import { finishedIn } from '../../testing/staging-progress.js'
import { waitFor } from '../../testing/world.js'
import { type Downloaded, downloadFiles } from './download-files.js'
import { listIntoManifest } from './list-into-manifest.js'
import { publishCopy } from './publish-copy.js'

const signal = new AbortController().signal
const MIB = 1024 * 1024
let bench: SourceBench
before(async () => {
  bench = await startSourceBench()
})
after(() => bench.close())
beforeEach(() => {
  process.env.DSC_RETRY_FOR = '60s' // attempts end sooner
})

async function stage(from: BenchSource, copyDirectory: string, stallTimeoutMs = 5000, threads = 0) {
  const listing = await listIntoManifest({ ...from, copyDirectory, signal })
  return {
    listing,
    downloaded: await downloadFiles({ ...from, copyDirectory, stallTimeoutMs, threads, signal }),
  }
}

/** Number of files verified by more than their size; the method depends on the server. */
function countProven({ verifiedBy }: Downloaded): number {
  const { size: _, 'own-sha256': __, ...proven } = verifiedBy
  return Object.values(proven).reduce((sum, files) => sum + files, 0)
}

async function failureOf(work: Promise<unknown>) {
  const error = await work.then(
    () => assert.fail('expected a failure'),
    (reason: unknown) => reason,
  )
  assert.ok(isDscError(error), `not a DscError: ${error instanceof Error ? error.stack : error}`)
  assert.ok(error.hint, `no hint: ${error.message}`)
  return error
}

const GET_A = 'GET /[^/]+/data/a'
for (const { name, fault } of [
  { name: 'a reset before the answer', fault: { kind: 'reset' } },
  { name: 'a reset in the body', fault: { kind: 'reset', afterBytes: 70_000 } },
  { name: 'a truncated body', fault: { kind: 'truncate', afterBytes: 70_000 } },
  { name: 'a flipped bit', fault: { kind: 'flip', atByte: 100_000 } },
  { name: 'a stall before the answer', fault: { kind: 'stall', afterBytes: -1 } },
  { name: 'a stall in the body', fault: { kind: 'stall', afterBytes: 70_000 } },
  { name: '503 SlowDown', fault: { kind: 'status', status: 503, code: 'SlowDown', retryAfterSeconds: 1 } },
  { name: '500 InternalError', fault: { kind: 'status', status: 500, code: 'InternalError' } },
] satisfies { name: string; fault: Fault }[]) {
  for (const threads of [0, 2])
    test(`a download survives ${name}, with ${threads} threads`, async () => {
      const body = Buffer.alloc(200_000, 'abc')
      const from = await bench.makeSource({ a: body, b: 'beta' })
      bench.proxy.setRules([{ match: GET_A, fault, times: 1 }])
      const copyDirectory = bench.makePath('copy')
      const beganMs = performance.now()
      const { downloaded } = await stage(from, copyDirectory, fault.kind === 'stall' ? 3000 : 20_000, threads)
      assert.equal(countProven(downloaded), 2)
      assert.equal(downloaded.fetchedBytes, 200_004)
      assert.equal(downloaded.retries, 1)
      assert.ok(readFileSync(join(copyDirectory, 'files/a')).equals(body))
      if (name.includes('SlowDown'))
        assert.ok(performance.now() - beganMs >= 1000, 'Retry-After was not waited for')
    })
}

for (const { name, match, fault, code, requests } of [
  {
    name: '403',
    match: GET_A,
    fault: { kind: 'status', status: 403, code: 'AccessDenied' },
    code: 'SOURCE_DENIED',
    requests: 1,
  },
  {
    name: '404',
    match: GET_A,
    fault: { kind: 'status', status: 404, code: 'NoSuchKey' },
    code: 'SOURCE_NOT_FOUND',
    requests: 1,
  },
  {
    name: '412',
    match: GET_A,
    fault: { kind: 'status', status: 412, code: 'PreconditionFailed' },
    code: 'SOURCE_CHANGED',
    requests: 1,
  },
  {
    name: 'a bit that always flips',
    match: GET_A,
    fault: { kind: 'flip', atByte: 3 },
    code: 'CHECKSUM_MISMATCH',
    requests: 4,
  },
  {
    name: 'a body that is always short',
    match: GET_A,
    fault: { kind: 'truncate', afterBytes: 0 },
    code: 'SOURCE_TRUNCATED',
    requests: 5,
  },
  {
    name: 'a stall that comes again',
    match: GET_A,
    fault: { kind: 'stall', afterBytes: 0 },
    code: 'SOURCE_STALLED',
    requests: 2, // or more, as fit into its time
  },
  {
    name: '403 on the listing',
    match: 'list-type',
    fault: { kind: 'status', status: 403, code: 'AccessDenied' },
    code: 'SOURCE_DENIED',
    requests: 1,
  },
  {
    name: 'a missing bucket',
    match: 'list-type',
    fault: { kind: 'status', status: 404, code: 'NoSuchBucket' },
    code: 'SOURCE_NOT_FOUND',
    requests: 1,
  },
] satisfies { name: string; match: string; fault: Fault; code: string; requests: number }[]) {
  for (const threads of [0, 2])
    test(`a download gives ${name} its own failure and publishes nothing, with ${threads} threads`, async () => {
      const from = await bench.makeSource({ a: 'alpha', b: 'its etag is an MD5' })
      bench.proxy.setRules([{ match, fault }])
      const copyDirectory = bench.makePath('copy')
      bench.proxy.onRequest(async (line) => {
        // The object that shows that etags are MD5 comes first: without it, dsc takes those of `a` for something else.
        if (code === 'CHECKSUM_MISMATCH' && line.includes(`${from.bucket}/data/a`))
          await waitFor('b', () => finishedIn(copyDirectory).files.includes('b'))
      })
      const isStall = code === 'SOURCE_STALLED'
      if (isStall) process.env.DSC_RETRY_FOR = '4s'
      const error = await failureOf(stage(from, copyDirectory, isStall ? 300 : 20_000, threads))
      assert.equal(error.code, code, error.message)
      const asked = bench.proxy.count(new RegExp(match))
      assert.ok(isStall ? asked >= requests : asked === requests, `${asked} requests`)
      const finalDirectory = bench.makePath('final')
      if (match === GET_A)
        assert.equal(
          (await failureOf(publishCopy({ root: '/', copyDirectory, finalDirectory }))).code,
          'COPY_DAMAGED',
        )
      assert.ok(!existsSync(finalDirectory))
      bench.proxy.setRules([])
      await stage(from, copyDirectory)
      assert.equal(readFileSync(join(copyDirectory, 'files/a'), 'utf8'), 'alpha')
    })
}

test('a connection that breaks again and again is no failure as long as bytes come', async () => {
  const body = Buffer.alloc(3 * MIB, 5)
  const from = await bench.makeSource({ a: body })
  bench.proxy.setRules([{ match: GET_A, fault: { kind: 'truncate', afterBytes: 100_000 } }])
  const copyDirectory = bench.makePath('copy')
  await stage(from, copyDirectory)
  assert.ok(readFileSync(join(copyDirectory, 'files/a')).equals(body))
  assert.ok(bench.proxy.count(new RegExp(GET_A)) > 8)
})

test('an unreachable endpoint is SOURCE_UNREACHABLE', async () => {
  process.env.DSC_RETRY_FOR = '2s'
  const from = await bench.makeSource({ a: 'alpha' }, { endpoint: 'http://127.0.0.1:1' })
  const error = await failureOf(stage(from, bench.makePath('copy')))
  assert.equal(error.code, 'SOURCE_UNREACHABLE')
  assert.match(error.message, /127\.0\.0\.1:1/)
})

test('an endpoint whose name does not resolve is SOURCE_UNREACHABLE', async () => {
  process.env.DSC_RETRY_FOR = '2s'
  const from = await bench.makeSource({ a: 'alpha' }, { endpoint: 'http://no-such-host.invalid' })
  const error = await failureOf(stage(from, bench.makePath('copy')))
  assert.equal(error.code, 'SOURCE_UNREACHABLE')
})

test('a prefix without objects is SOURCE_EMPTY', async () => {
  const from = await bench.makeSource({})
  assert.equal((await failureOf(stage(from, bench.makePath('copy')))).code, 'SOURCE_EMPTY')
})

test('an object replaced between two parts is noticed, and the next listing is a new one', async () => {
  const old = Buffer.alloc(40 * MIB, 1)
  const from = await bench.makeSource({ a: 'fetched before', big: old })
  bench.proxy.setRules([])
  const copyDirectory = bench.makePath('copy')
  const { version } = await listIntoManifest({ ...from, copyDirectory, signal })
  let ranges = 0
  const next = Buffer.alloc(40 * MIB, 2)
  bench.proxy.onRequest(async (line) => {
    if (line.includes(`${from.bucket}/data/big bytes=`) && ++ranges === 2)
      await bench.server.putObject(from.bucket, 'data/big', next)
  })
  const error = await failureOf(downloadFiles({ ...from, copyDirectory, concurrency: 1, signal }))
  assert.equal(error.code, 'SOURCE_CHANGED')
  bench.proxy.forget()
  const again = await stage(from, copyDirectory)
  assert.equal(bench.proxy.count(/data\/a$/), 0, 'what did not change is not fetched again')
  assert.deepEqual(readdirSync(copyDirectory).sort(), ['files', 'manifest.db'])
  assert.notEqual(again.listing.version, version)
  assert.ok(readFileSync(join(copyDirectory, 'files/big')).equals(next))
})

test('a part with a flipped bit is noticed although only the whole has a checksum', async () => {
  const body = Buffer.alloc(40 * MIB, 7)
  const from = await bench.makeSource({ big: body })
  bench.proxy.setRules([
    { match: 'data/big bytes=16777216-', fault: { kind: 'flip', atByte: 1_000_000 }, times: 1 },
  ])
  const copyDirectory = bench.makePath('copy')
  const { downloaded } = await stage(from, copyDirectory)
  assert.equal(countProven(downloaded), 1)
  assert.ok(readFileSync(join(copyDirectory, 'files/big')).equals(body))
})

test('a stopped download goes on where it stopped', async () => {
  const objects = Object.fromEntries(
    Array.from({ length: 40 }, (_, index) => [`${index}`, `object ${index}`]),
  )
  const from = await bench.makeSource({ ...objects, big: Buffer.alloc(50 * MIB, 5) })
  bench.proxy.setRules([])
  const copyDirectory = bench.makePath('copy')
  await listIntoManifest({ ...from, copyDirectory, signal })
  const stop = new AbortController()
  let parts = 0
  bench.proxy.onRequest((line) => {
    if (line.includes(`${from.bucket}/data/big bytes=`) && ++parts === 3) stop.abort('SIGTERM')
  })
  const options = { ...from, copyDirectory, concurrency: 1 }
  assert.equal((await failureOf(downloadFiles({ ...options, signal: stop.signal }))).code, 'INTERRUPTED')
  bench.proxy.forget()
  const { listing, downloaded } = await stage(from, copyDirectory)
  assert.equal(bench.proxy.count(/list-type/), 0, 'a complete listing is used again')
  assert.equal(bench.proxy.count(/data\/big bytes=/), 2, 'two parts were finished')
  assert.equal(bench.proxy.count(/GET .*data\/\d+$/), 0, 'small objects were finished')
  assert.equal(downloaded.fetchedFiles, 1)
  assert.equal(listing.files, 41)
})
