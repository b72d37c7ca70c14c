import pg from 'pg'
import { type PostgresServer, startPostgresServer } from '../../testing/postgres-server.js'
import { recordModelContract } from '../contract/record-model.contract.js'
import { openPostgresRecord } from './record-store.js'

// A history takes about 100 round trips to the server; scripts raise the number with this variable.
process.env.DSC_TEST_MODEL_RUNS ??= '15'

/** Concurrent histories, each in its own database: enough to keep this process and the server busy. */
const DATABASES = 4

recordModelContract('PostgreSQL', async () => {
  const server = await startPostgresServer()
  const opened = await Promise.all(Array.from({ length: DATABASES }, () => open(server)))
  return {
    records: opened,
    close: async () => {
      for (const { close } of opened) await close()
      await server.close()
    },
  }
})

async function open(server: PostgresServer) {
  const url = await server.makeDatabase('socket')
  const clients = [await openPostgresRecord(url), await openPostgresRecord(url)] as const
  const raw = new pg.Client({ connectionString: url })
  await raw.connect()
  return {
    clients,
    reset: async () => {
      await raw.query('DELETE FROM leases; DELETE FROM copies; DELETE FROM events')
    },
    close: async () => {
      for (const client of clients) await client.close()
      await raw.end()
    },
  }
}
