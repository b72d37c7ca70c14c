import type { Writable } from 'node:stream'
import pg from 'pg'
import type { SqlRow, SqlValue } from '../sql-database.js'
import type { ConnectionPlan, ServerTarget } from './read-connection.js'
import type { ServerClock } from './server-clock.js'

/** Every wait for the server ends: nothing of the record takes so long. */
const QUERY_TIMEOUT_MS = 90_000
const CONNECT_TIMEOUT_MS = 5000
/** A connection that nobody uses is given up soon: servers have few. */
const IDLE_MS = 2000
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

/** Connections to the server, made when they are needed and kept for the next. */
export interface Connections {
  take(): Promise<Connection>
  close(): Promise<void>
}

/** What was found out about a connection when it was made. */
interface Session {
  /** Something stands in between that gives every transaction another session, such as PgBouncer. */
  readonly isPooled: boolean
  readonly isStandby: boolean
  readonly isReadOnly: boolean
}

const SESSION = `SELECT pg_backend_pid() AS pid, pg_is_in_recovery() AS standby,
  current_setting('transaction_read_only') = 'on' AS read_only`

/** Asks a new connection what it leads to. */
export async function readSession(client: pg.Client | pg.PoolClient): Promise<Session> {
  const { rows } = await client.query<{ pid: number; standby: string; read_only: string }>(SESSION)
  const { pid, standby, read_only } = rows[0]!
  // A pooler invents the process id that it tells its clients.
  const claimedPid = (client as unknown as { readonly processID: number | null }).processID
  return { isPooled: pid !== claimedPid, isStandby: standby === 't', isReadOnly: read_only === 't' }
}

/** Opens up to `most` connections, each when it is first needed, to the first server of the plan that is right. */
export function openConnections(plan: ConnectionPlan, most: number, clock: ServerClock): Connections {
  const servers = plan.targets.map((target) => new ServerPool(plan, target, most))
  let preferred = 0
  return {
    async take() {
      let failure: unknown
      for (let turn = 0; turn < servers.length; turn++) {
        const index = (preferred + turn) % servers.length
        try {
          const taken = await servers[index]!.take(clock)
          preferred = index
          return taken
        } catch (error) {
          // Of several ways, the first one's failure is told unless a later one came further. That it has no TLS is
          // no failure where it may be used without, and says nothing of a server that went away after it.
          if (failure === undefined || hasNoTls(failure) || !isUnreachable(error)) failure = error
        }
      }
      throw failure
    },
    close: async () => {
      await Promise.all(servers.map((server) => server.close()))
    },
  }
}

function isUnreachable(error: unknown): boolean {
  return (
    error instanceof Error &&
    ('errno' in error || error instanceof AggregateError || hasNoTls(error) || /timeout/i.test(error.message))
  )
}

function hasNoTls(error: unknown): boolean {
  return error instanceof Error && /does not support SSL/i.test(error.message)
}

/** The connections to one server in one way. */
class ServerPool {
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
    // A server that goes away is noticed by whoever asks next.
    this.#pool.on('error', () => {})
    this.#pool.on('connect', (client) => {
      client.on('error', () => {})
    })
  }

  async take(clock: ServerClock): Promise<Connection> {
    const client = await this.#pool.connect()
    try {
      const session = this.#sessions.get(client) ?? (await readSession(client))
      this.#sessions.set(client, session)
      requireKind(this.#plan, session)
      return createConnection(client, session, clock)
    } catch (error) {
      client.release(true)
      throw error
    }
  }

  close(): Promise<void> {
    return this.#pool.end()
  }
}

/** Where a server is not what the plan wants, another one may be, or this one later. */
function requireKind({ kind, location }: ConnectionPlan, { isStandby, isReadOnly }: Session): void {
  const isRight = {
    any: true,
    'read-write': !isStandby && !isReadOnly,
    'read-only': isStandby || isReadOnly,
    primary: !isStandby,
    standby: isStandby,
  }[kind]
  if (isRight) return
  const found = isStandby ? 'is a standby' : isReadOnly ? 'is read-only' : 'is a primary that takes writes'
  throw Object.assign(new Error(`the server ${found}, and ${location} is to lead to one that is ${kind}`), {
    code: '25006',
  })
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
          ? client.query<SqlRow>({ ...(name && { name }), text: sql, values: [...parameters] })
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
}

/** The socket under a client, which its types do not show. */
function streamOf(client: pg.PoolClient): Pick<Writable, 'cork' | 'uncork'> {
  return (client as unknown as { readonly connection: { readonly stream: Writable } }).connection.stream
}

const names = new Map<string, string>()
/** The record has some sixty statements; lists of values make a few more of each. */
const MAX_NAMES = 1000

/** A statement with a name is parsed once per connection. Beyond `MAX_NAMES` there are no new ones. */
function nameStatement(sql: string): string | undefined {
  const known = names.get(sql)
  if (known !== undefined || names.size >= MAX_NAMES) return known
  const name = `dsc${names.size}`
  names.set(sql, name)
  return name
}

/** How a connection of the record is made. Numbers come as numbers: all of them are below 2^53. */
export function connectionSettings(plan: ConnectionPlan, target: ServerTarget): pg.ClientConfig {
  const { host, port, tls, password } = target
  return {
    host,
    port,
    ssl: tls ?? false,
    user: plan.user,
    database: plan.database,
    // A function, so that the driver does not look for one itself.
    password: () => password ?? '',
    application_name: plan.applicationName,
    ...(plan.options === undefined ? {} : { options: plan.options }),
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
