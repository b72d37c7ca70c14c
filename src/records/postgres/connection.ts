import type { SqlRow, SqlValue } from '../database/sql-database.js'
import type { ConnectionPlan } from './read-connection.js'
import type { ServerClock } from './server-clock.js'

/** The result of a statement. */
export interface QueryResult {
  readonly rows: readonly SqlRow[]
  readonly changes: number
}

/**
 * A connection taken from the pool; exactly one of `giveBack` and `destroy` ends it. Statements are sent at once, in
 * one packet per turn of the event loop, and run in order: a transaction whose statements need not wait for each
 * other's answers costs one round trip to the server.
 */
export interface Connection {
  query(sql: string, parameters?: readonly SqlValue[]): Promise<QueryResult>
  /** Runs the statements that begin a transaction; the last one returns `now_ms`, the server's clock. */
  begin(sql: string): Promise<void>
  readonly giveBack: () => void
  readonly destroy: () => void
}

/** Connections to the server, made on demand and kept for reuse. */
export interface Connections {
  take(): Promise<Connection>
  close(): Promise<void>
}

/** Facts about a connection, found when it was made. */
export interface Session {
  /** A pooler such as PgBouncer, between client and server, gives every transaction another session. */
  readonly isPooled: boolean
  readonly isStandby: boolean
  readonly isReadOnly: boolean
}

/** Throws if the server is not the kind that the plan wants: another one may be, or this one later. */
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

/** One server, reached in one way. */
export interface Server {
  take(clock: ServerClock): Promise<Connection>
  close(): Promise<void>
}

/** Takes connections from the first suitable server. */
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
          // Of several ways, report the first failure unless a later one got further. A missing TLS is no failure if
          // the connection may be unencrypted, and says nothing about a server that went away after it.
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
