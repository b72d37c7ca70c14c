import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { recordModelContract } from '../contract/record-model.contract.js'
import { openSqliteRecord } from './record-store.js'

/** In memory where available: 40 durable transactions per history would wait for the disk otherwise. */
const FAST_DIRECTORY = '/dev/shm'

recordModelContract('SQLite', async () => {
  const parent = await mkdtemp(join(FAST_DIRECTORY, 'dsc-test-')).catch(() =>
    mkdtemp(join(tmpdir(), 'dsc-test-')),
  )
  const path = join(parent, 'record.db')
  const clients = [await openSqliteRecord(path), await openSqliteRecord(path)] as const
  const raw = new Database(path)
  const reset = async () => {
    raw.exec('DELETE FROM leases; DELETE FROM copies; DELETE FROM events')
  }
  return {
    records: [{ clients, reset }],
    close: async () => {
      for (const client of clients) await client.close()
      raw.close()
      await rm(parent, { recursive: true })
    },
  }
})
