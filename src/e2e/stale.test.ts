import assert from 'node:assert/strict'
import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import Database from 'better-sqlite3'
import { type Running, succeeds } from '../testing/dsc-processes.js'
import { startFaultyStore } from '../testing/faulty-store.js'
import { mountSmallDisk, whyNoSmallDisk } from '../testing/small-disk.js'
import { makeWorld, s3Dataset, type World, waitFor, writeTree } from '../testing/world.js'
import { type CrashPoint, crashEnvironment } from './crash/crash-steps.js'

const MIB = 1024 * 1024
const { server, proxy, bucket, close } = await startFaultyStore()

before(async () => {
  for (const key of ['a.txt', 'b.txt']) await server.putObject(bucket, `slow/${key}`, key)
})
after(close)

/** A world in which the first prepare of `slow` hangs in its download. */
async function makeSlowWorld(context: Parameters<typeof makeWorld>[0]) {
  const world = await makeWorld(context, {
    server,
    datasets: { slow: s3Dataset(bucket, 'slow/', proxy.endpoint) },
  })
  proxy.setRules([{ match: 'GET .*a.txt', times: 1, fault: { kind: 'stall', afterBytes: -1 } }])
  return world
}

/** Starts a prepare whose lease is its own process's, so that it dies with it. */
async function startPrepare(world: World, task: string): Promise<Running> {
  const running = world.start(['prepare', 'slow', '--task', task, '--ttl', '1s'])
  await waitFor(task, () => world.query(`SELECT 1 FROM leases WHERE task = '${task}'`).length > 0)
  return running
}

async function kill(...processes: readonly Running[]): Promise<void> {
  for (const { process: child } of processes) child.kill('SIGKILL')
  await Promise.all(processes.map(({ finished }) => finished))
}

function assertSettled(world: World, states: readonly string[]): void {
  const copies = world.query<{ state: string }>('SELECT state FROM copies ORDER BY state')
  assert.deepEqual(
    copies.map(({ state }) => state),
    states,
  )
  for (const name of ['staging', 'trash']) assert.deepEqual(readdirSync(join(world.root, name)), [], name)
}

test('a prepare that waits and is killed leaves nothing but a lease that cleanup ends; the stager goes on', async (context) => {
  const world = await makeSlowWorld(context)
  const stager = await startPrepare(world, 'stager')
  await waitFor('the download', () => world.query(`SELECT 1 FROM copies WHERE state = 'staging'`).length > 0)
  const waiting = await startPrepare(world, 'waiter')
  await kill(waiting)
  assert.equal(world.query('SELECT 1 FROM copies').length, 1)
  await sleep(1000) // its lease was for so long
  assert.equal((await world.dsc('cleanup', '--abandoned-after', '0s')).code, 0)
  assert.equal(world.query(`SELECT 1 FROM leases WHERE task = 'waiter'`).length, 0)
  assert.equal(world.query(`SELECT 1 FROM leases WHERE purpose = 'stage'`).length, 1, 'the stager is alive')
  await kill(stager)
  assert.equal((await world.dsc('cleanup', '--abandoned-after', '0s')).code, 0)
  assertSettled(world, [])
})

test('a stager and a waiter killed at once leave a staging that the next prepare finishes', async (context) => {
  const world = await makeSlowWorld(context)
  const stager = await startPrepare(world, 'stager')
  const waiter = await startPrepare(world, 'waiter')
  await kill(stager, waiter)
  proxy.setRules([])
  const next = await succeeds(world.dsc('prepare', 'slow', '--task', 'next'))
  assert.deepEqual(readdirSync(next.stdout.trimEnd()).toSorted(), ['a.txt', 'b.txt'])
  assert.equal((await world.dsc('cleanup', '--abandoned-after', '0s')).code, 0)
  assertSettled(world, ['ready'])
})

test('a cleanup that is killed while it removes the trash, twice in a row, is finished by the third', {
  skip: process.env.DSC_BIN && 'the executable preloads nothing',
}, async (context) => {
  const world = await makeWorld(context, {})
  assert.equal((await world.dsc('cleanup')).code, 0)
  const stray = join(world.root, 'trash', 'stray')
  for (let folder = 0; folder < 20; folder++) {
    mkdirSync(join(stray, `${folder}`), { recursive: true })
    for (let file = 0; file < 50; file++) writeFileSync(join(stray, `${folder}`, `${file}`), '')
  }
  const count = () => readdirSync(join(world.root, 'trash'), { recursive: true }).length
  const point: CrashPoint = { step: 'folder in the trash removed', moment: 'after', times: 5 }
  const environment = crashEnvironment(join(world.directory, 'trace'), point)
  for (let round = 0; round < 2; round++) {
    const { signal } = await world.start(['cleanup'], { environment }).finished
    assert.equal(signal, 'SIGKILL')
    assert.ok(count() > 0, 'something is left')
  }
  await succeeds(world.dsc('cleanup'))
  assert.equal(count(), 0)
})

test('a record that another process has locked is waited for', async (context) => {
  const world = await makeWorld(context, {})
  await writeTree(join(world.directory, 'source'), { 'a.txt': 'alpha' })
  await world.configure({ datasets: { letters: { source: `file://${join(world.directory, 'source')}/` } } })
  assert.equal((await world.dsc('status')).code, 0)
  const other = new Database(world.recordPath)
  context.after(() => other.close())
  other.exec('BEGIN IMMEDIATE')
  const running = world.start(['prepare', 'letters', '--task', 'one'])
  await Promise.race([running.finished, sleep(10_000)])
  assert.equal(running.process.exitCode, null, 'it waits')
  other.exec('COMMIT')
  await succeeds(running.finished)
})

test('a disk that is full while the listing is written down is DISK_FULL, and nothing is left of it', {
  skip: whyNoSmallDisk,
}, async (context) => {
  const disk = await mountSmallDisk(context, 16 * MIB)
  const world = await makeWorld(context, { root: join(disk, 'cache') })
  writeFileSync(join(disk, 'ballast'), Buffer.alloc(15.5 * MIB))
  const source = join(world.directory, 'source')
  mkdirSync(source)
  for (let file = 0; file < 5000; file++) writeFileSync(join(source, `${file}-${'long'.repeat(40)}`), '')
  await writeTree(join(world.directory, 'few'), { 'a.txt': 'alpha' })
  await world.configure({
    datasets: {
      names: { source: `file://${source}/` },
      few: { source: `file://${join(world.directory, 'few')}/` },
    },
  })
  const full = await world.dsc('prepare', 'names', '--task', 'one')
  assert.equal(full.code, 6, full.stderr)
  assert.doesNotMatch(full.stderr, /^\s+at /m)
  assertSettled(world, [])
  rmSync(join(disk, 'ballast'))
  await succeeds(world.dsc('prepare', 'few', '--task', 'one'))
})
