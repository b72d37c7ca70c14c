import { randomUUID } from 'node:crypto'
import pg from 'pg'
import type { Durability, SqlRow, SqlTransaction, SqlValue, WriteScope } from '../sql-database.js'
import { classifyFailure } from './classify-failure.js'
import type { Connection, Connections } from './connections.js'
import { createTransaction } from './postgres-transaction.js'

/**
 * How one attempt ended. `lost`: the connection broke; with `unsure`, during COMMIT, so that only the server
 * knows whether `value` counts.
 */
export type Attempt<T> =
  | { readonly outcome: 'done'; readonly value: T }
  | { readonly outcome: 'conflict'; readonly error: unknown }
  | {
      readonly outcome: 'lost'
      readonly error: unknown
      readonly unsure?: { readonly token: string; readonly value: T }
    }
  | { readonly outcome: 'failed'; readonly error: unknown }

/**
 * The timeouts end the transaction of a process that was stopped in the middle of it, so that it holds nobody up
 * for longer.
 */
const LIMITS = `SET LOCAL lock_timeout = '60s';
  SET LOCAL statement_timeout = '60s'; SET LOCAL idle_in_transaction_session_timeout = '20s'`

/**
 * Runs `work` in one transaction while no other writer of the same scope runs. READ COMMITTED, so that statements
 * after the lock see what those before it committed. A durable
 * one leaves a token in `dsc_outcomes`, by which `findOutcome` knows it again. (Transaction ids would not do: after
 * a crash the server gives those of lost transactions to others.) Quick writes may be repeated: each sets values,
 * and the worst that can happen is a second line in the history.
 */
export async function tryWrite<T>(
  connections: Connections,
  how: { readonly durability: Durability; readonly scope: WriteScope },
  work: (transaction: SqlTransaction) => Promise<T>,
): Promise<Attempt<T>> {
  const token = randomUUID()
  const isDurable = how.durability === 'durable'
  const begin = `BEGIN ISOLATION LEVEL READ COMMITTED; ${LIMITS};
    SET LOCAL synchronous_commit = ${isDurable ? 'on' : 'off'};
    ${formatLock(how.scope)}
    ${isDurable ? `; INSERT INTO dsc_outcomes (token) VALUES ('${token}')` : ''}`
  return attempt(connections, async (connection, note) => {
    await connection.begin(begin)
    const value = await work(createTransaction(connection))
    if (isDurable) note({ token, value })
    await connection.query('COMMIT')
    return value
  })
}

/** First number of the advisory locks of nodes; the second is a hash of the node's name. */
const NODE_LOCKS = 7_237_252

/** `all` waits for every scope and holds up every scope; nodes hold up only their own. */
function formatLock(scope: WriteScope): string {
  if (scope === 'all') return 'LOCK TABLE dsc_turn IN EXCLUSIVE MODE'
  const shared = 'LOCK TABLE dsc_turn IN ROW SHARE MODE'
  if (scope === 'rows') return shared
  const lock = (node: string) => `${shared}; SELECT pg_advisory_xact_lock(${NODE_LOCKS}, hashtext(${node}))`
  if ('node' in scope) return lock(pg.escapeLiteral(scope.node))
  // A copy never changes its node, so it may be looked up before the lock is held.
  if ('copyId' in scope) {
    return `${lock('node')} FROM copies WHERE copy_id = ${pg.escapeLiteral(scope.copyId)}`
  }
  const lease = pg.escapeLiteral(scope.leaseId)
  return `${lock('copies.node')} FROM copies JOIN leases ON leases.copy_id = copies.copy_id
    WHERE leases.lease_id = ${lease}`
}

/** Runs `work` on one snapshot. */
export async function tryRead<T>(
  connections: Connections,
  work: (transaction: SqlTransaction) => Promise<T>,
): Promise<Attempt<T>> {
  return attempt(connections, async (connection) => {
    await connection.query(`BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; ${LIMITS}`)
    const value = await work(createTransaction(connection))
    await connection.query('COMMIT')
    return value
  })
}

/** Runs one statement that changes nothing; the client's own time limit ends it if need be. */
export async function tryStatement(
  connections: Connections,
  sql: string,
  parameters: readonly SqlValue[] = [],
): Promise<Attempt<readonly SqlRow[]>> {
  return attempt(connections, (connection) => createTransaction(connection).all(sql, parameters))
}

/** Runs `body` on a connection and says how that ended; the connection is usable or gone afterwards. */
export async function attempt<T>(
  connections: Connections,
  body: (
    connection: Connection,
    note: (unsure: { readonly token: string; readonly value: T }) => void,
  ) => Promise<T>,
): Promise<Attempt<T>> {
  let connection: Connection | undefined
  let unsure: { readonly token: string; readonly value: T } | undefined
  try {
    connection = await connections.take()
    const value = await body(connection, (noted) => {
      unsure = noted
    })
    connection.giveBack()
    return { outcome: 'done', value }
  } catch (error) {
    const outcome = classifyFailure(error)
    if (outcome === 'lost') {
      connection?.destroy()
      return { outcome, error, ...(unsure && { unsure }) }
    }
    await connection?.query('ROLLBACK').then(connection.giveBack, connection.destroy)
    return { outcome, error }
  }
}

/**
 * Finds out whether the transaction with this token committed. Tries to leave the same token: that waits for the
 * transaction if it is still under way, fails if it committed, and if it succeeds keeps it from ever committing.
 */
export async function findOutcome(
  connections: Connections,
  token: string,
): Promise<Attempt<'committed' | 'aborted'>> {
  return attempt(connections, async (connection) => {
    await connection.query(`SET lock_timeout = '30s'`)
    const { changes } = await connection.query(
      'INSERT INTO dsc_outcomes (token) VALUES ($1) ON CONFLICT DO NOTHING',
      [token],
    )
    return changes === 0 ? 'committed' : 'aborted'
  })
}

/** Forgets tokens that nobody can ask for any more. */
export async function forgetOldOutcomes(connections: Connections): Promise<Attempt<undefined>> {
  return attempt(connections, async (connection) => {
    await connection.query(`DELETE FROM dsc_outcomes WHERE left_at < now() - interval '1 hour'`)
    return undefined
  })
}
