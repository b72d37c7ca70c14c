import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { createServer, type Socket } from 'node:net'
import { after, before, test } from 'node:test'
import pg from 'pg'
import { exampleCopy, exampleLease, NOW_MS } from '../../testing/example-copies.js'
import { type PostgresServer, startPostgresServer } from '../../testing/postgres-server.js'
import { openClients } from '../contract-test.contract.js'
import { recordStoreContract } from '../record-store.contract.js'
import { openPostgresRecord } from './record-store.js'
import { openShortRecord } from './short-record.js'

let server: PostgresServer
before(async () => {
  server = await startPostgresServer()
})
after(() => server.close())

recordStoreContract('PostgreSQL without the driver', async (context) => {
  const url = await server.makeDatabase()
  await (await openPostgresRecord(url)).close()
  const clients = await openClients(context, () => openShortRecord(url))
  const readView = async () => {
    const raw = new pg.Client({ connectionString: url })
    await raw.connect()
    try {
      const { rows } = await raw.query('SELECT * FROM cache_record')
      return rows.map((row) => ({ ...row, reference_count: Number(row.reference_count) }))
    } finally {
      await raw.end()
    }
  }
  return { ...clients, readView }
})

test('what the server refuses is told with its code, and the record works on', async (context) => {
  const url = await server.makeDatabase()
  await (await openPostgresRecord(url)).close()
  const record = await openShortRecord(url)
  context.after(() => record.close())
  await record.addAdopted(exampleCopy('flowers'), NOW_MS)
  await assert.rejects(record.renewLease('id', Number.NaN, NOW_MS), /bigint/)
  const use = { dataset: 'flowers', node: 'node-a', lease: exampleLease("it's a \\ 'task'") }
  assert.ok(await record.leaseReady(use, NOW_MS))
  const [lease] = await record.listLeases({})
  assert.equal(lease?.task, "it's a \\ 'task'")
})

test('a server that is gone, or goes away in the middle, is one that cannot be used', async (context) => {
  const sockets: Socket[] = []
  const silent = createServer((socket) => {
    sockets.push(socket)
    socket.on('error', () => {})
    socket.once('data', () => socket.destroy())
  })
  await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve))
  context.after(() => silent.close())
  const { port } = silent.address() as { port: number }
  for (const place of [`127.0.0.1:${port}`, '127.0.0.1:1'])
    await assert.rejects(openShortRecord(`postgres://dsc@${place}/dsc`), { code: 'RECORD_UNAVAILABLE' })
})

test('a password is proven by SCRAM, over TCP and to a server without TLS, and a wrong one is refused', async () => {
  const url = await server.makeDatabase('tcp')
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  await client.query(`ALTER USER dsc PASSWORD 'sécret, of "any" kind'`)
  const { rows } = await client.query('SHOW hba_file')
  writeFileSync(rows[0].hba_file, 'local all all trust\nhost all all 127.0.0.1/32 scram-sha-256\n')
  await client.query('SELECT pg_reload_conf()')
  await client.end()
  const withPassword = (password: string) => url.replace('dsc@', `dsc:${encodeURIComponent(password)}@`)
  const right = withPassword('sécret, of "any" kind')
  await (await openPostgresRecord(right)).close()
  const record = await openShortRecord(right)
  await record.addAdopted(exampleCopy('flowers'), NOW_MS)
  assert.equal((await record.listCopies({}, NOW_MS)).length, 1)
  await record.close()
  await assert.rejects(openShortRecord(withPassword('secret')), { code: 'RECORD_UNAVAILABLE' })
  await assert.rejects(openShortRecord(url), /password/)
})
