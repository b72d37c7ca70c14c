import assert from 'node:assert/strict'
import { connect, createServer } from 'node:net'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { openPostgresRecord } from '../../records/postgres/record-store.js'
import { exampleDataset } from '../../testing/example-copies.js'
import { listenLocally } from '../../testing/listen-locally.js'
import { needs } from '../../testing/needs.js'
import { startPgBouncer } from '../../testing/pgbouncer.js'
import { startPostgresServer } from '../../testing/postgres-server.js'
import { makeWorld, type World, writeTree } from '../../testing/world.js'

/** A server whose record has its tables, and one that follows it. */
async function startWithStandby(context: TestContext) {
  const server = await startPostgresServer()
  context.after(() => server.close())
  const url = await server.makeDatabase()
  await (await openPostgresRecord(url)).close()
  const standby = await server.makeStandby()
  return { server, url, standby }
}

/** Prepares the datasets of a cluster world in turns, all at once, and returns the paths that were printed. */
async function prepareAtOnce(world: World, { calls, datasets }: { calls: number; datasets: number }) {
  const prepared = await Promise.all(
    Array.from({ length: calls }, (_, index) =>
      world.dsc('prepare', `data-${index % datasets}`, '--task', `t${index}`),
    ),
  )
  for (const { code, stderr } of prepared) assert.equal(code, 0, stderr)
  return new Set(prepared.map(({ stdout }) => stdout))
}

/** Folders to stage, so that only the record is remote. */
async function makeClusterWorld(context: TestContext, record: string, count: number) {
  const world = await makeWorld(context, { record })
  const datasets: Record<string, unknown> = {}
  for (let index = 0; index < count; index++) {
    const folder = join(world.directory, `source-${index}`)
    await writeTree(folder, { 'a.bin': `content ${index}` })
    datasets[`data-${index}`] = { source: `${pathToFileURL(folder)}/` }
  }
  await world.configure({ record, datasets })
  return world
}

test('a prepare with a wrong duration ends at once', async (context) => {
  const server = await startPostgresServer()
  context.after(() => server.close())
  const world = await makeClusterWorld(context, await server.makeDatabase(), 1)
  assert.equal((await world.dsc('prepare', 'data-0', '--task', 'one')).code, 0)
  const beganMs = performance.now()
  const refused = await world.dsc('prepare', 'data-0', '--task', 'two', '--ttl', '365d')
  assert.equal(refused.code, 2)
  assert.match(refused.stderr, /expected at most 30d/)
  const tookMs = performance.now() - beganMs
  assert.ok(tookMs < 45_000, `${tookMs} ms`) // a connection that was left waits for 90 s
})

test('behind PgBouncer in transaction mode, stagings side by side, waiting and history work', {
  skip: needs('pgbouncer', 'pgbouncer'),
}, async (context) => {
  const server = await startPostgresServer()
  context.after(() => server.close())
  const through = await startPgBouncer(context, server.port)
  const world = await makeClusterWorld(context, through(await server.makeDatabase()), 10)
  assert.equal((await prepareAtOnce(world, { calls: 20, datasets: 10 })).size, 10)
  const status = JSON.parse((await world.dsc('status', '--json')).stdout)
  assert.equal(status.copies.length, 10)
  for (const words of [
    ['cleanup'],
    ['verify', 'data-0'],
    ['why', 'data-1'],
    ['release', 'data-2', '--task', 't2'],
  ]) {
    const { code, stderr } = await world.dsc(...words)
    assert.equal(code, 0, `${words}: ${stderr}`)
  }
})

test('forty callers share a server of ten connections', async (context) => {
  const server = await startPostgresServer({ options: ['max_connections=10'] })
  context.after(() => server.close())
  const world = await makeClusterWorld(context, await server.makeDatabase(), 5)
  assert.equal((await prepareAtOnce(world, { calls: 40, datasets: 5 })).size, 5)
})

test('writes go on over a fail-over behind one address that leads to a standby for a while', async (context) => {
  const { server, url, standby } = await startWithStandby(context)
  let target = server.port
  const sockets = new Set<{ destroy(): unknown }>()
  const relay = createServer((client) => {
    const upstream = connect(target, '127.0.0.1')
    for (const socket of [client, upstream]) {
      sockets.add(socket)
      socket.on('error', () => {}) // a reset is what a fail-over looks like from here
      socket.on('close', () => {
        client.destroy()
        upstream.destroy()
      })
    }
    client.pipe(upstream).pipe(client)
  })
  const port = await listenLocally(relay, context)
  const record = await openPostgresRecord(url.replace(`:${server.port}/`, `:${port}/`))
  context.after(() => record.close())
  await record.saveDataset(exampleDataset('before'), 1)
  target = standby.port
  for (const socket of sockets) socket.destroy()
  const writing = Promise.all(
    Array.from({ length: 20 }, (_, index) => record.saveDataset(exampleDataset(`during-${index}`), 1)),
  )
  const world = await makeWorld(context, { record: url.replace(`:${server.port}/`, `:${port}/`) })
  const doctor = await world.dsc('doctor')
  assert.match(doctor.stdout + doctor.stderr, /standby/)
  await server.stop('fast')
  await standby.promote()
  await writing
  assert.equal((await record.listDatasets()).length, 21)
})

test('of several servers, the one that takes writes is found, also after the other takes over', async (context) => {
  const { server, url, standby } = await startWithStandby(context)
  const hosts = `127.0.0.1:${standby.port},127.0.0.1:${server.port}`
  const both = `${url.replace(`127.0.0.1:${server.port}`, hosts)}?target_session_attrs=read-write`
  const record = await openPostgresRecord(both)
  context.after(() => record.close())
  await record.saveDataset(exampleDataset('first'), 1)
  await server.stop('immediate')
  const writing = record.saveDataset(exampleDataset('second'), 1)
  await standby.promote()
  await writing
  assert.ok(await record.findDataset('second'))
})
