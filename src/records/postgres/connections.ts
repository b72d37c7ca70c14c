import pg from 'pg'
import type { SqlRow, SqlValue } from '../sql-database.js'
import type { ServerClock } from './server-clock.js'

/** Every wait for the server ends: nothing of the record takes so long. */
const QUERY_TIMEOUT_MS = 90_000
const CONNECT_TIMEOUT_MS = 5000
const INT8_OID = 20
const INT4_OID = 23

/** What a statement did. */
export interface QueryResult {
  readonly rows: readonly SqlRow[]
  readonly changes: number
}

/** A connection taken from the pool; exactly one of `giveBack` and `destroy` ends it. */
export interface Connection {
  query(sql: string, parameters?: readonly SqlValue[]): Promise<QueryResult>
  /** Runs the statements that begin a transaction; sets the server's clock on the way. */
  begin(sql: string): Promise<void>
  readonly giveBack: () => void
  readonly destroy: () => void
}

export interface Connections {
  take(): Promise<Connection>
  close(): Promise<void>
}

/** Opens up to `most` connections to the server, each when it is first needed. */
export function openConnections(url: string, most: number, clock: ServerClock): Connections {
  const pool = new pg.Pool({ ...connectionSettings(url), max: most, idleTimeoutMillis: 10_000 })
  // A server that goes away is noticed by whoever asks next.
  pool.on('error', () => {})
  pool.on('connect', (client) => client.on('error', () => {}))
  return {
    async take() {
      const client = await pool.connect()
      return {
        query: async (sql, parameters = []) => {
          const { rows, rowCount } = await (parameters.length > 0
            ? client.query<SqlRow>(sql, [...parameters])
            : client.query<SqlRow>(sql))
          return { rows, changes: rowCount ?? 0 }
        },
        begin: async (sql) => {
          const asked = `${sql}; SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now_ms`
          // Several statements in one message have several results, which the types do not know.
          const results = (await client.query<SqlRow>(asked)) as unknown as readonly pg.QueryResult<SqlRow>[]
          clock.set(Number(results.at(-1)!.rows[0]!.now_ms))
        },
        giveBack: () => client.release(),
        destroy: () => client.release(true),
      }
    },
    close: () => pool.end(),
  }
}

/** How every connection of the record is made. Numbers come as numbers: all of them are below 2^53. */
export function connectionSettings(url: string): pg.ClientConfig {
  return {
    connectionString: url,
    application_name: 'dsc',
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    query_timeout: QUERY_TIMEOUT_MS,
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
    types: {
      getTypeParser: (oid: number) => (text: string) =>
        oid === INT8_OID || oid === INT4_OID ? Number(text) : text,
    } as pg.CustomTypesConfig,
  }
}
