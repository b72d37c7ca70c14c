import type { Writable } from 'node:stream'
import pg from 'pg'
import { openOrClose } from '../../failure/closers.js'
import type { SqlRow } from '../database/sql-database.js'
import {
  type Connection,
  type Connections,
  connectInOrder,
  requireKind,
  type Server,
  type Session,
} from './connection.js'
import type { ConnectionPlan, ServerTarget } from './read-connection.js'
import type { ServerClock } from './server-clock.js'

/** Every wait for the server ends: no statement of the record takes this long. */
const QUERY_TIMEOUT_MS = 90_000
const CONNECT_TIMEOUT_MS = 5000
/** Idle connections close soon: servers have few. */
const IDLE_MS = 2000

const INT8_OID = 20
const INT4_OID = 23

const ASK_SESSION = `SELECT pg_backend_pid() AS pid, pg_is_in_recovery() AS standby,
  current_setting('transaction_read_only') = 'on' AS read_only`

/** Asks a new connection about its session. A pooler invents the process id that it gives its clients. */
export async function readSession(client: pg.Client | pg.PoolClient): Promise<Session> {
  const { rows } = await client.query<SqlRow>(ASK_SESSION)
  const { pid, standby, read_only } = rows[0]!
  const claimedPid = (client as unknown as { readonly processID: number | null }).processID
  return { isPooled: pid !== claimedPid, isStandby: standby === 't', isReadOnly: read_only === 't' }
}

/** Opens up to `most` connections, each on first use, to the first suitable server of the plan. */
export function openConnections(plan: ConnectionPlan, most: number, clock: ServerClock): Connections {
  return connectInOrder(
    plan.targets.map((target) => new ServerPool(plan, target, most)),
    clock,
  )
}

/** Connections to one server over one way. */
class ServerPool implements Server {
  readonly #plan: ConnectionPlan
  readonly #pool: pg.Pool
  readonly #sessions = new WeakMap<pg.PoolClient, Session>()

  constructor(plan: ConnectionPlan, target: ServerTarget, most: number) {
    this.#plan = plan
    this.#pool = new pg.Pool({
      ...connectionSettings(plan, target),
      pipeline: true,
      max: most,
      idleTimeoutMillis: IDLE_MS,
    })
    // The next query notices a server that went away.
    this.#pool.on('error', () => {})
    this.#pool.on('connect', (client) => {
      client.on('error', () => {})
    })
  }

  async take(clock: ServerClock): Promise<Connection> {
    return openOrClose(async (closers) => {
      const client = await this.#pool.connect()
      closers.add(() => client.release(true))
      const session = this.#sessions.get(client) ?? (await readSession(client))
      this.#sessions.set(client, session)
      requireKind(this.#plan, session)
      return createConnection(client, session, clock)
    })
  }

  close(): Promise<void> {
    return this.#pool.end()
  }
}

function createConnection(client: pg.PoolClient, { isPooled }: Session, clock: ServerClock): Connection {
  const send = <Answer>(work: () => Promise<Answer>): Promise<Answer> => {
    const stream = streamOf(client)
    stream.cork()
    process.nextTick(() => stream.uncork())
    return work()
  }
  return {
    query: async (sql, parameters = []) => {
      const name = isPooled ? undefined : nameStatement(sql)
      const { rows, rowCount } = await send(() =>
        parameters.length > 0
          ? client.query<SqlRow>({ name, text: sql, values: [...parameters] })
          : client.query<SqlRow>(sql),
      )
      return { rows, changes: rowCount ?? 0 }
    },
    begin: async (sql) => {
      // Several statements in one message have several results, which the types omit.
      const results = (await send(() =>
        client.query<SqlRow>(sql),
      )) as unknown as readonly pg.QueryResult<SqlRow>[]
      clock.set(Number(results.at(-1)!.rows[0]!.now_ms))
    },
    giveBack: () => client.release(),
    destroy: () => client.release(true),
  }
}

/** The socket under a client, which its types omit. */
function streamOf(client: pg.PoolClient): Pick<Writable, 'cork' | 'uncork'> {
  return (client as unknown as { readonly connection: { readonly stream: Writable } }).connection.stream
}

const names = new Map<string, string>()
/** The record has about sixty statements; lists of values make a few more of each. */
const MAX_NAMES = 1000

/** PostgreSQL parses a named statement once per connection. Beyond `MAX_NAMES` statements stay unnamed. */
function nameStatement(sql: string): string | undefined {
  const known = names.get(sql)
  if (known !== undefined || names.size >= MAX_NAMES) return known
  const name = `dsc${names.size}`
  names.set(sql, name)
  return name
}

/** The driver's settings for a connection of the record. */
export function connectionSettings(plan: ConnectionPlan, target: ServerTarget): pg.ClientConfig {
  const { host, port, tls, password } = target
  return {
    host,
    port,
    ssl: tls ?? false,
    user: plan.user,
    database: plan.database,
    // A function, so that the driver does not look for a password itself.
    password: () => password ?? '',
    application_name: plan.applicationName,
    options: plan.options,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    query_timeout: QUERY_TIMEOUT_MS,
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
    types: {
      // Integers become numbers: all of them are below 2^53.
      getTypeParser: (oid: number) => (text: string) =>
        oid === INT8_OID || oid === INT4_OID ? Number(text) : text,
    } as pg.CustomTypesConfig,
  }
}
