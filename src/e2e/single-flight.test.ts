import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { succeeds } from '../testing/dsc-processes.js'
import type { FaultProxy } from '../testing/fault-proxy.js'
import { startFaultyStore } from '../testing/faulty-store.js'
import { findStaging, finishedOf } from '../testing/staging-progress.js'
import { makeWorld, s3Dataset, waitFor } from '../testing/world.js'

const SMALL_FILES = 30
const LARGE_BYTES = 70 * 1024 * 1024 // several parts

const { server, proxy, bucket, close } = await startFaultyStore()
let large: Buffer

before(async () => {
  for (let file = 0; file < SMALL_FILES; file++) {
    await server.putObject(bucket, `many/${file}.txt`, `content of ${file}`)
  }
  large = Buffer.alloc(LARGE_BYTES)
  for (let offset = 0; offset < LARGE_BYTES; offset += 4)
    large.writeUInt32LE((offset * 2654435761) >>> 0, offset)
  await server.putObject(bucket, 'large/model.bin', large)
  for (let file = 0; file < 8; file++) await server.putObject(bucket, `large/${file}.txt`, `small ${file}`)
})
after(close)

test('twenty prepares of one dataset at once: one listing, one download, twenty leases, one path', async (context) => {
  const world = await makeWorld(context, {
    server,
    datasets: { many: s3Dataset(bucket, 'many/', proxy.endpoint) },
  })
  proxy.forget()
  const tasks = Array.from({ length: 20 }, (_, index) => `job-${index}`)
  const results = await Promise.all(tasks.map((task) => world.dsc('prepare', 'many', '--task', task)))
  for (const { code, stderr } of results) assert.equal(code, 0, stderr)
  assert.equal(new Set(results.map(({ stdout }) => stdout)).size, 1)
  assert.deepEqual(world.query('SELECT dataset, reference_count FROM cache_record'), [
    { dataset: 'many', reference_count: 20 },
  ])
  assert.equal(proxy.count(/list-type=2/), 1, 'listings')
  assert.equal(proxy.count(/GET .*\/many\/\d+\.txt/), SMALL_FILES, 'objects fetched')
})

test('a stager killed with -9 is replaced by one that waits, and nothing finished is fetched twice', async (context) => {
  const world = await makeWorld(context, {
    server,
    datasets: { large: s3Dataset(bucket, 'large/', proxy.endpoint) },
  })
  proxy.forget()
  proxy.setRules([{ match: 'GET .*model.bin', skip: 2, fault: { kind: 'stall', afterBytes: 1000 } }])
  const stager = world.start(['prepare', 'large', '--task', 'first'])
  const waiting = await waitFor('the staging', () => findStaging(world)).then(() =>
    world.start(['prepare', 'large', '--task', 'second']),
  )
  await waitFor('two finished parts', () => finishedOf(world).parts >= 2, 60_000)
  const before = rangesOf(proxy)
  const finished = finishedOf(world) // seen before the kill: the other one goes on at once
  stager.process.kill('SIGKILL')
  await stager.finished
  assert.ok(finished.parts < 5, `in mid-way: ${finished.parts} parts`)
  proxy.setRules([])
  const second = await succeeds(waiting.finished)
  assert.ok((await readFile(join(second.stdout.trimEnd(), 'model.bin'))).equals(large))
  const refetched = rangesOf(proxy)
    .slice(before.length)
    .filter((range) => finished.ranges.has(range))
  assert.deepEqual(refetched, [], 'finished parts that were fetched again')
  for (const key of finished.files) assert.equal(proxy.count(new RegExp(`/large/${key}`)), 1, key)
  const cleaned = await world.dsc('cleanup', '--abandoned-after', '0s')
  assert.equal(cleaned.stdout, 'nothing to clean up\n')
  assert.deepEqual(
    world.query('SELECT task FROM leases ORDER BY task'),
    [{ task: 'first' }, { task: 'second' }],
    '--task leases live until released, also when the caller is killed',
  )
})

test('a refresh that waited for a stager that died looks for the new version itself', async (context) => {
  await server.putObject(bucket, 'changing/a.txt', 'old')
  const world = await makeWorld(context, {
    server,
    datasets: { changing: s3Dataset(bucket, 'changing/', proxy.endpoint) },
  })
  proxy.setRules([])
  assert.equal((await world.dsc('prepare', 'changing', '--task', 'before')).code, 0)
  await server.putObject(bucket, 'changing/a.txt', 'new')
  proxy.setRules([{ match: 'GET .*a.txt', times: 1, fault: { kind: 'stall', afterBytes: -1 } }])
  const stager = world.start(['prepare', 'changing', '--refresh', '--task', 'first'])
  await waitFor('the staging', () => findStaging(world))
  const waiting = world.start(['prepare', 'changing', '--refresh', '--task', 'second'])
  await waitFor('the waiting', () => world.query(`SELECT 1 FROM leases WHERE task = 'second'`).length > 0)
  stager.process.kill('SIGKILL')
  const second = await succeeds(waiting.finished)
  assert.equal(await readFile(join(second.stdout.trimEnd(), 'a.txt'), 'utf8'), 'new')
  assert.equal(world.query(`SELECT 1 FROM leases WHERE task = 'second'`).length, 1)
})

test('cleanup --resume finishes a staging whose stager was killed, and keeps no lease on it', async (context) => {
  const world = await makeWorld(context, {
    server,
    datasets: { large: s3Dataset(bucket, 'large/', proxy.endpoint) },
  })
  proxy.setRules([{ match: 'GET .*model.bin', skip: 2, fault: { kind: 'stall', afterBytes: 1000 } }])
  const stager = world.start(['prepare', 'large', '--task', 'first'])
  await waitFor('two finished parts', () => finishedOf(world).parts >= 2, 60_000)
  stager.process.kill('SIGKILL')
  await stager.finished
  proxy.setRules([])
  await world.dsc('cleanup')
  assert.deepEqual(
    world.query('SELECT state FROM copies'),
    [{ state: 'staging' }],
    'young: it may be gone on with',
  )
  const cleaned = await succeeds(world.dsc('cleanup', '--resume'))
  assert.match(cleaned.stderr, /finished the staging of large/)
  assert.deepEqual(world.query('SELECT state FROM copies'), [{ state: 'ready' }])
  assert.deepEqual(world.query('SELECT task FROM leases'), [{ task: 'first' }])
})

test('--no-wait fails at once while another process stages, naming it', async (context) => {
  const world = await makeWorld(context, {
    server,
    datasets: { large: s3Dataset(bucket, 'large/', proxy.endpoint) },
  })
  proxy.setRules([{ match: 'model.bin', fault: { kind: 'stall', afterBytes: 1000 } }])
  const stager = world.start(['prepare', 'large', '--task', 'first'])
  await waitFor('the staging', () => findStaging(world))
  const refused = await world.dsc('prepare', 'large', '--task', 'second', '--no-wait')
  assert.equal(refused.code, 10)
  assert.match(
    refused.stderr,
    new RegExp(`being staged by process ${stager.process.pid} on .* \\(task first\\)`),
  )
  assert.deepEqual(world.query(`SELECT task FROM leases WHERE purpose = 'use'`), [{ task: 'first' }])
  stager.process.kill('SIGINT')
  assert.equal((await stager.finished).signal, 'SIGINT')
  proxy.setRules([])
  assert.deepEqual(world.query('SELECT * FROM leases'), [])
  assert.equal((await world.dsc('prepare', 'large', '--task', 'second', '--no-wait')).code, 0)
})

test('everybody who waits is told why the stager failed, and the next call tries again', async (context) => {
  const world = await makeWorld(context, {
    server,
    datasets: { many: s3Dataset(bucket, 'many/', proxy.endpoint) },
  })
  proxy.setRules([
    { match: '/many/', fault: { kind: 'delay', delayMs: 1500 }, times: 1 },
    { match: '/many/', fault: { kind: 'status', status: 403, code: 'AccessDenied' } },
  ])
  const results = await Promise.all(
    [1, 2, 3, 4].map((task) => world.dsc('prepare', 'many', '--task', `t${task}`)),
  )
  for (const { code, stderr, stdout } of results) {
    assert.equal(code, 7, stderr)
    assert.equal(stdout, '')
  }
  assert.deepEqual(world.query('SELECT * FROM leases'), [])
  proxy.setRules([])
  assert.equal((await world.dsc('prepare', 'many', '--task', 't1')).code, 0)
})

function rangesOf(seen: FaultProxy): string[] {
  return seen.requests.flatMap(({ line }) => /model\.bin.* bytes=(\d+-\d+)/.exec(line)?.[1] ?? [])
}
