import type { SqlDatabase } from '../database/sql-database.js'
import { ChangeListener } from './change-listener.js'
import { openConnections } from './connections.js'
import { createPostgresDatabase, type PostgresOptions } from './create-database.js'
import { readConnection } from './read-connection.js'
import { createServerClock } from './server-clock.js'

/** Opens the record in a PostgreSQL database: see `createPostgresDatabase`. */
export async function openPostgresDatabase(url: string, options: PostgresOptions = {}): Promise<SqlDatabase> {
  const plan = readConnection(url)
  const clock = createServerClock()
  const connections = openConnections(plan, options.connections ?? 8, clock)
  const changes = new ChangeListener(plan)
  return createPostgresDatabase({ location: plan.location, clock, connections, changes }, options)
}
