import type { SqlRow, SqlValue } from '../database/sql-database.js'
import type { ConnectionPlan } from './read-connection.js'
import type { ServerClock } from './server-clock.js'

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
export interface Session {
  /** Something stands in between that gives every transaction another session, such as PgBouncer. */
  readonly isPooled: boolean
  readonly isStandby: boolean
  readonly isReadOnly: boolean
}

/** Asks a new connection what it leads to. */
export const ASK_SESSION = `SELECT pg_backend_pid() AS pid, pg_is_in_recovery() AS standby,
  current_setting('transaction_read_only') = 'on' AS read_only`

/** Reads the answer to `ASK_SESSION`; a pooler invents the process id that it tells its clients. */
export function toSession([row]: readonly SqlRow[], claimedPid: number | null): Session {
  const { pid, standby, read_only } = row!
  return { isPooled: pid !== claimedPid, isStandby: standby === 't', isReadOnly: read_only === 't' }
}

/** Where a server is not what the plan wants, another one may be, or this one later. */
export function requireKind({ kind, location }: ConnectionPlan, { isStandby, isReadOnly }: Session): void {
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

const INT8_OID = 20
const INT4_OID = 23

/** A value of a column of the type `oid`. Numbers come as numbers: all of them are below 2^53. */
export function readValue(oid: number, text: string): string | number {
  return oid === INT8_OID || oid === INT4_OID ? Number(text) : text
}

/** One server, in one way to reach it. */
export interface Server {
  take(clock: ServerClock): Promise<Connection>
  close(): Promise<void>
}

/** Takes connections from the first of the servers that is right. */
export function connectInOrder(servers: readonly Server[], clock: ServerClock): Connections {
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
