import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { readdir, rm, statfs, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { succeeds } from '../testing/dsc-processes.js'
import { startFaultyStore } from '../testing/faulty-store.js'
import { mountSmallDisk, whyNoSmallDisk } from '../testing/small-disk.js'
import { makeWorld, s3Dataset, type World, waitFor } from '../testing/world.js'

const MIB = 1024 * 1024
const DATASETS = 20
const DATASET_BYTES = 6 * MIB

const { server, proxy, bucket, close } = await startFaultyStore()

before(async () => {
  for (let number = 0; number < DATASETS; number++) {
    for (let file = 0; file < 3; file++) {
      await server.putObject(bucket, `d${number}/${file}.bin`, randomBytes(DATASET_BYTES / 3))
    }
  }
})
after(close)

const names = Array.from({ length: DATASETS }, (_, number) => `d${number}`)
const datasets = () =>
  Object.fromEntries(names.map((name) => [name, s3Dataset(bucket, `${name}/`, proxy.endpoint)]))

/** Looks at record and disk every 10 ms and remembers the worst. */
function watch(world: World, disk: string) {
  const worst = { copies: 0, chargedBytes: 0, usedBytes: 0, samples: 0 }
  const gone: string[] = []
  let held = new Map<string, string>()
  let isOn = true
  const running = (async () => {
    while (isOn) {
      const { blocks, bfree, bsize } = await statfs(disk)
      worst.usedBytes = Math.max(worst.usedBytes, (blocks - bfree) * bsize)
      const rows = world.query<{ state: string; charged_bytes: number }>(
        `SELECT state, charged_bytes FROM copies WHERE state <> 'reserved'`,
      )
      worst.copies = Math.max(worst.copies, rows.filter(({ state }) => state !== 'evicting').length)
      worst.chargedBytes = Math.max(
        worst.chargedBytes,
        rows.reduce((sum, row) => sum + row.charged_bytes, 0),
      )
      // A copy that was leased or locked in one sample must be there in the next unless it was let go.
      const leased = world.query<{ copy_id: string; path: string }>(
        `SELECT copy_id, path FROM copies WHERE state = 'ready' AND (lock_state IS NOT NULL
          OR EXISTS (SELECT 1 FROM leases WHERE leases.copy_id = copies.copy_id AND task LIKE 'hold-%'))`,
      )
      const now = new Map(leased.map(({ copy_id, path }) => [copy_id, path]))
      for (const [copyId, path] of held) if (!now.has(copyId)) gone.push(path)
      held = now
      worst.samples += 1
      await new Promise((resolve) => setTimeout(resolve, 10))
    }
  })()
  return {
    worst,
    gone,
    stop: async () => {
      isOn = false
      await running
    },
  }
}

test('twenty processes, twenty datasets, room for five: the quota holds and refusals explain themselves', {
  skip: whyNoSmallDisk,
}, async (context) => {
  const disk = await mountSmallDisk(context, 200 * MIB)
  const world = await makeWorld(context, {
    server,
    root: join(disk, 'cache'),
    cache: { maxDatasets: 5, maxPercent: 50 },
    datasets: datasets(),
  })
  const watched = watch(world, disk)
  const first = await Promise.all(names.map((name) => world.dsc('prepare', name, '--task', `hold-${name}`)))
  const staged = first.filter(({ code }) => code === 0)
  assert.equal(staged.length, 5, first.map(({ stderr }) => stderr).join('\n'))
  for (const { code, stderr, stdout } of first.filter((result) => result.code !== 0)) {
    assert.equal(code, 5, stderr)
    assert.equal(stdout, '')
    assert.match(stderr, /it needs [\d.]+ MiB; max(Datasets allows 5 and 5 are taken|Percent allows)/)
    assert.match(stderr, /evictable: nothing/)
    assert.match(stderr, /held: d\d+ [\d.]+ MiB, (leased by hold-d\d+|being staged)/)
  }
  await watched.stop()
  assert.deepEqual(watched.gone, [])
  const held = world
    .query<{ dataset: string }>('SELECT dataset FROM cache_record')
    .map(({ dataset }) => dataset)
  await world.dsc('lock', held[0]!)
  for (const name of held.slice(2)) await world.dsc('release', name, '--task', `hold-${name}`)
  await world.dsc('release', held[0]!, '--task', `hold-${held[0]}`)
  const again = watch(world, disk)
  const others = names.filter((name) => !held.includes(name))
  const second = await Promise.all(
    others.map((name) => world.dsc('run', name, '--', 'sh', '-c', 'cat "$DSC_DATASET"/*.bin | wc -c')),
  )
  for (const { code, stdout, stderr } of second) {
    assert.ok(code === 0 || code === 5, stderr)
    if (code === 0) assert.equal(stdout.trim(), String(DATASET_BYTES))
  }
  assert.ok(second.filter(({ code }) => code === 0).length >= 3, 'three places could be freed')
  await again.stop()
  assert.deepEqual(again.gone, [])
  for (const { worst } of [watched, again]) {
    assert.ok(worst.samples > 20, `${worst.samples} samples`)
    assert.ok(worst.copies <= 5, `${worst.copies} copies at once`)
    assert.ok(worst.chargedBytes <= 100 * MIB, `${worst.chargedBytes} bytes charged`)
    assert.ok(worst.usedBytes <= 100 * MIB, `${worst.usedBytes} bytes on disk`)
  }
  const kept = world
    .query<{ dataset: string }>('SELECT dataset FROM cache_record')
    .map(({ dataset }) => dataset)
  assert.ok(kept.includes(held[0]!), 'the locked one stays')
  assert.ok(kept.includes(held[1]!), 'the leased one stays')
  assert.deepEqual(await readdir(join(world.root, 'trash')), [])
})

test('a disk that fills up in mid-download: a clear error, nothing published, the reservation gone', {
  skip: whyNoSmallDisk,
}, async (context) => {
  const disk = await mountSmallDisk(context, 64 * MIB)
  const world = await makeWorld(context, { server, root: join(disk, 'cache'), datasets: datasets() })
  await succeeds(world.dsc('prepare', 'd0', '--task', 'a'))
  await world.dsc('release', 'd0', '--task', 'a')
  const filled = Promise.withResolvers<void>()
  proxy.onRequest((line) => (line.includes('/d1/') ? filled.promise : undefined))
  const staging = world.start(['prepare', 'd1', '--task', 'b'])
  await waitFor('the staging', () => world.query(`SELECT 1 FROM copies WHERE state = 'staging'`).length > 0)
  const filler = join(disk, 'filler')
  const { bavail, bsize } = await statfs(disk)
  await writeFile(filler, Buffer.alloc(bavail * bsize)).catch(() => undefined)
  filled.resolve()
  const failed = await staging.finished
  assert.equal(failed.code, 6, failed.stderr)
  assert.equal(failed.stdout, '')
  assert.doesNotMatch(failed.stderr, /\n\s+at /)
  assert.deepEqual(world.query('SELECT dataset, state FROM copies'), [{ dataset: 'd0', state: 'ready' }])
  assert.deepEqual(world.query('SELECT * FROM leases'), [])
  assert.deepEqual(await readdir(join(world.root, 'staging')), [])
  assert.equal((await world.dsc('prepare', 'd1', '--task', 'b')).code, 6, 'not even the listing fits')
  await rm(filler)
  const { bavail: room } = await statfs(disk)
  await writeFile(filler, Buffer.alloc(room * bsize - 5 * MIB))
  const refused = await world.dsc('prepare', 'd1', '--task', 'b')
  assert.equal(refused.code, 5, refused.stderr)
  assert.match(refused.stderr, /the disk has .* free above minFree/)
  assert.equal(
    world.query('SELECT 1 FROM copies').length,
    1,
    'nothing is evicted when it would not be enough',
  )
  // Leave so much that the idle copy has to go: what d1 needs is more than what is free, less than both.
  await rm(filler)
  const { bavail: free } = await statfs(disk)
  await writeFile(filler, Buffer.alloc(free * bsize - 12 * MIB))
  await succeeds(world.dsc('prepare', 'd1', '--task', 'b'))
  assert.deepEqual(world.query('SELECT dataset, state FROM copies'), [{ dataset: 'd1', state: 'ready' }])
})
