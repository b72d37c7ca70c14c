import type { Writable } from 'node:stream'
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

/**
 * A connection taken from the pool; exactly one of `giveBack` and `destroy` ends it. Statements are sent at once,
 * those of one turn of the event loop in one packet, and are run in order: a transaction whose statements need
 * not wait for each other's answers costs one way to the server and back.
 */
export interface Connection {
  query(sql: string, parameters?: readonly SqlValue[]): Promise<QueryResult>
  /** Runs the statements that begin a transaction; the last one answers `now_ms`, the server's clock. */
  begin(sql: string): Promise<void>
  readonly giveBack: () => void
  readonly destroy: () => void
}

export interface Connections {
  take(): Promise<Connection>
  close(): Promise<void>
}

/** The timeouts end the transaction of a process that was stopped in the middle of it, so that it holds nobody up. */
const SESSION = `SET lock_timeout = '60s'; SET statement_timeout = '60s';
  SET idle_in_transaction_session_timeout = '20s'`

/** Opens up to `most` connections to the server, each when it is first needed. */
export function openConnections(url: string, most: number, clock: ServerClock): Connections {
  const pool = new pg.Pool({
    ...connectionSettings(url),
    pipeline: true,
    max: most,
    idleTimeoutMillis: 10_000,
  })
  // A server that goes away is noticed by whoever asks next.
  pool.on('error', () => {})
  pool.on('connect', (client) => {
    client.on('error', () => {})
    client.query(SESSION).catch(() => {})
  })
  return {
    async take() {
      const client = await pool.connect()
      const send = <Answer>(work: () => Promise<Answer>): Promise<Answer> => {
        const stream = streamOf(client)
        stream.cork()
        process.nextTick(() => stream.uncork())
        return work()
      }
      return {
        query: async (sql, parameters = []) => {
          const { rows, rowCount } = await send(() =>
            parameters.length > 0
              ? client.query<SqlRow>({ name: nameStatement(sql), text: sql, values: [...parameters] })
              : client.query<SqlRow>(sql),
          )
          return { rows, changes: rowCount ?? 0 }
        },
        begin: async (sql) => {
          // Several statements in one message have several results, which the types do not know.
          const results = (await send(() =>
            client.query<SqlRow>(sql),
          )) as unknown as readonly pg.QueryResult<SqlRow>[]
          clock.set(Number(results.at(-1)!.rows[0]!.now_ms))
        },
        giveBack: () => client.release(),
        destroy: () => client.release(true),
      }
    },
    close: () => pool.end(),
  }
}

/** The socket under a client, which its types do not show. */
function streamOf(client: pg.PoolClient): Pick<Writable, 'cork' | 'uncork'> {
  return (client as unknown as { readonly connection: { readonly stream: Writable } }).connection.stream
}

const names = new Map<string, string>()
/** The record has some sixty statements; lists of values make a few more of each. */
const MOST_NAMES = 1000

/** A statement with a name is parsed once per connection. Beyond `MOST_NAMES` there are no new ones. */
function nameStatement(sql: string): string | undefined {
  const known = names.get(sql)
  if (known !== undefined || names.size >= MOST_NAMES) return known
  const name = `dsc${names.size}`
  names.set(sql, name)
  return name
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
