import type { RecordStore } from '../contract/record-store.js'
import { createSqlRecordStore } from '../sql-record-store.js'
import { createPostgresDatabase } from './create-database.js'
import { readConnection } from './read-connection.js'
import { createServerClock } from './server-clock.js'
import { openOneConnection } from './wire-connection.js'

/**
 * Opens the record in PostgreSQL over one connection and without the driver, for a call that takes milliseconds:
 * anything unusual fails at once, and there is no notice of changes.
 */
export async function openShortRecord(url: string): Promise<RecordStore> {
  const plan = readConnection(url)
  const clock = createServerClock()
  const connections = openOneConnection(plan, clock)
  return createSqlRecordStore(
    await createPostgresDatabase({ location: plan.location, clock, connections }, { patienceMs: 0 }),
  )
}
