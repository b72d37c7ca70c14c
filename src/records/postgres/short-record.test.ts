import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { createServer, type Socket } from 'node:net'
import { after, before, test } from 'node:test'
import pg from 'pg'
import { exampleCopy, exampleLease, NOW_MS } from '../../testing/example-copies.js'
import { type PostgresServer, readCacheRecord, startPostgresServer } from '../../testing/postgres-server.js'
import { openClients } from '../contract/contract-test.contract.js'
import { recordStoreContract } from '../contract/record-store.contract.js'
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
  return { ...clients, readView: () => readCacheRecord(url) }
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

test('a server that takes a password without having proven that it knows it is not believed', async (context) => {
  const message = (kind: string, request: number, words = '') => {
    const body = Buffer.concat([Buffer.alloc(8), Buffer.from(words)])
    body.writeInt32BE(body.length, 0)
    body.writeInt32BE(request, 4)
    return Buffer.concat([Buffer.from(kind), body])
  }
  const ready = Buffer.from([0x5a, 0, 0, 0, 5, 0x49])
  for (const proof of [[], [message('R', 12, 'v=forged')]]) {
    const seen: string[] = []
    const rogue = createServer((socket) => {
      socket.on('error', () => {})
      socket.on('data', (bytes) => {
        const said = bytes.toString('latin1')
        seen.push(said)
        if (bytes[0] !== 0x70) socket.write(message('R', 10, 'SCRAM-SHA-256\0\0'))
        else if (said.includes('n,,')) {
          const nonce = /r=(.*)$/.exec(said)![1]!
          socket.write(message('R', 11, `r=${nonce}more,s=c2FsdA==,i=4096`))
        } else socket.write(Buffer.concat([...proof, message('R', 0), ready]))
      })
    })
    await new Promise<void>((resolve) => rogue.listen(0, '127.0.0.1', resolve))
    context.after(() => rogue.close())
    const { port } = rogue.address() as { port: number }
    await assert.rejects(
      openShortRecord(`postgres://dsc:secret@127.0.0.1:${port}/dsc?sslmode=disable`),
      /did not prove itself/,
    )
    assert.ok(
      seen.some((said) => said.includes(',p=')),
      'the password was proven',
    )
  }
})
