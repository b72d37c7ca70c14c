import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import type { Source, SourceAccess } from '../../sources/source.js'
import { type SourceBench, startSourceBench } from '../../testing/source-bench.js'
import { finishedIn } from '../../testing/staging-progress.js'
import { waitFor } from '../../testing/world.js'
import { downloadFiles } from './download-files.js'
import { listIntoManifest } from './list-into-manifest.js'
import { WaitingThreads } from './transfer/waiting-threads.js'

const MIB = 1024 * 1024
const { signal } = new AbortController()
let bench: SourceBench
before(async () => {
  bench = await startSourceBench()
})
after(() => bench.close())

/** The same source, but with a changed description for threads. */
function withAccess(source: Source, change: (access: SourceAccess) => Partial<SourceAccess>): Source {
  return {
    ...source,
    async describeAccess() {
      const access = await source.describeAccess!()
      return { ...access, ...change(access) }
    },
  }
}

test('threads fetch small objects and parts of large ones', async () => {
  const big = Buffer.alloc(40 * MIB, 'dsc')
  const small = Object.fromEntries(
    Array.from({ length: 50 }, (_, index) => [`s/${index}`, `object ${index}`]),
  )
  const from = await bench.makeSource({ ...small, big, empty: '' })
  const copyDirectory = bench.makePath('copy')
  await listIntoManifest({ ...from, copyDirectory, signal })
  let progress = { writtenBytes: 0, doneFiles: 0 }
  const onProgress = (now: typeof progress) => {
    assert.ok(now.writtenBytes >= 0)
    progress = now
  }
  const downloaded = await downloadFiles({ ...from, copyDirectory, threads: 3, onProgress, signal })
  const bytes = big.length + Object.values(small).join('').length
  assert.equal(downloaded.fetchedFiles, 52)
  assert.equal(downloaded.fetchedBytes, bytes)
  assert.deepEqual(progress, { writtenBytes: bytes, doneFiles: 52 })
  assert.ok(readFileSync(join(copyDirectory, 'files/big')).equals(big))
  for (const [key, body] of Object.entries(small))
    assert.equal(readFileSync(join(copyDirectory, 'files', key), 'utf8'), body)
})

test('threads may report before the first object is asked of them', async () => {
  const from = await bench.makeSource({ a: 'alpha' })
  const copyDirectory = bench.makePath('copy')
  await listIntoManifest({ ...from, copyDirectory, signal })
  const waitingThreads = new WaitingThreads()
  const thread = waitingThreads.take()
  let reports = 0
  const begin = thread.begin.bind(thread)
  thread.begin = (work) => {
    begin(work)
    setImmediate(() => {
      work.onChange()
      reports += 1
    })
  }
  waitingThreads.take = () => thread
  const downloaded = await downloadFiles({ ...from, copyDirectory, threads: 1, waitingThreads, signal })
  assert.deepEqual([downloaded.fetchedFiles, reports], [1, 1])
})

test('credentials that expire are asked for again', async () => {
  const from = await bench.makeSource({ a: 'alpha', b: 'beta', c: 'gamma' })
  const copyDirectory = bench.makePath('copy')
  await listIntoManifest({ ...from, copyDirectory, signal })
  let asked = 0
  const source = withAccess(from.source, ({ answer }) => ({
    answer: async () => {
      asked += 1
      return { ...((await answer!(undefined)) as object), expiresAtMs: Date.now() }
    },
  }))
  await downloadFiles({ source, copyDirectory, threads: 1, concurrency: 1, signal })
  assert.equal(asked, 3, 'once per object, because each time they had expired')
})

test('credentials that cannot be had are the failure of the download', async () => {
  const from = await bench.makeSource({ a: 'alpha' })
  const copyDirectory = bench.makePath('copy')
  await listIntoManifest({ ...from, copyDirectory, signal })
  const source = withAccess(from.source, () => ({
    answer: () => Promise.reject(new Error('the card reader is empty')),
  }))
  await assert.rejects(downloadFiles({ source, copyDirectory, threads: 1, signal }), /card reader/)
})

test('a thread that dies fails the download instead of letting it hang', async () => {
  const from = await bench.makeSource({ a: 'alpha' })
  const copyDirectory = bench.makePath('copy')
  await listIntoManifest({ ...from, copyDirectory, signal })
  // Not a URL: the thread cannot even open its connections.
  const source = withAccess(from.source, () => ({ location: { origin: 'nonsense' } }))
  await assert.rejects(downloadFiles({ source, copyDirectory, threads: 2, signal }), /thread .* ended early/)
  await downloadFiles({ ...from, copyDirectory, threads: 2, signal })
  assert.equal(readFileSync(join(copyDirectory, 'files/a'), 'utf8'), 'alpha')
})

test('a download in threads stops promptly and goes on where it stopped', async () => {
  const from = await bench.makeSource({ a: 'alpha', z: Buffer.alloc(MIB) })
  bench.proxy.setRules([{ match: 'data/z', fault: { kind: 'stall', afterBytes: 70_000 } }])
  const copyDirectory = bench.makePath('copy')
  await listIntoManifest({ ...from, copyDirectory, signal })
  bench.proxy.forget()
  const stop = new AbortController()
  const stopped = assert.rejects(downloadFiles({ ...from, copyDirectory, threads: 2, signal: stop.signal }), {
    code: 'INTERRUPTED',
  })
  await waitFor('half of it', () => {
    const isHalfThere = bench.proxy.sentBytes >= 70_000 && existsSync(join(copyDirectory, 'files/z'))
    return isHalfThere && finishedIn(copyDirectory).files.includes('a')
  })
  stop.abort('SIGTERM')
  await stopped
  assert.ok(existsSync(join(copyDirectory, 'files/z')), 'half a small file is left to the next run')
  bench.proxy.setRules([])
  bench.proxy.forget()
  await downloadFiles({ ...from, copyDirectory, threads: 2, signal })
  assert.equal(bench.proxy.count(/data\/a/), 0)
  assert.equal(bench.proxy.count(/data\/z/), 1)
})

test('a bandwidth limit holds over all threads', async () => {
  const from = await bench.makeSource(
    Object.fromEntries(Array.from({ length: 8 }, (_, index) => [`${index}`, Buffer.alloc(MIB / 4, index)])),
  )
  const copyDirectory = bench.makePath('copy')
  await listIntoManifest({ ...from, copyDirectory, signal })
  const beganMs = performance.now()
  const bandwidthLimit = () => 4 * MIB
  await downloadFiles({ ...from, copyDirectory, threads: 2, bandwidthLimit, signal })
  // A lower bound only: 2 MiB at 4 MiB/s, minus the burst that may run ahead.
  assert.ok(performance.now() - beganMs > 350, `${performance.now() - beganMs} ms`)
})
