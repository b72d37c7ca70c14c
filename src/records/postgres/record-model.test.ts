import pg from 'pg'
import { startPostgresServer } from '../../testing/postgres-server.js'
import { recordModelContract } from '../record-model.contract.js'
import { openPostgresRecord } from './record-store.js'

// A history takes some 40 transactions over the network; scripts ask for more by this variable.
process.env.DSC_TEST_MODEL_RUNS ??= '15'

recordModelContract('PostgreSQL', async () => {
  const server = await startPostgresServer()
  const url = await server.makeDatabase()
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
      await server.close()
    },
  }
})
