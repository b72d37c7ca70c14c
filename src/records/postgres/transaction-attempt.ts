import { createUniqueId } from '../../platform/unique-id.js'
import type { Durability, SqlRow, SqlTransaction, SqlValue, WriteScope } from '../database/sql-database.js'
import { classifyFailure } from './classify-failure.js'
import type { Connection, Connections } from './connection.js'
import { createTransaction } from './postgres-transaction.js'

/**
 * The outcome of one attempt. `lost`: the connection broke; with `unsure`, during COMMIT, so that only the server knows
 * whether `value` counts.
 */
export type Attempt<T> =
  | { readonly outcome: 'done'; readonly value: T }
  | { readonly outcome: 'conflict'; readonly error: unknown }
  | {
      readonly outcome: 'lost'
      readonly error: unknown
      readonly unsure?: { readonly token: string; readonly value: T } | undefined
    }
  | { readonly outcome: 'failed'; readonly error: unknown }

/**
 * Runs `work` in one transaction while no other writer of the same scope runs. READ COMMITTED, so that statements after
 * the lock see the commits before it. A durable one leaves a token in `dsc_outcomes`, by which `findOutcome` recognizes
 * it. (Transaction ids would not do: after a crash the server reuses those of lost transactions.) Quick writes may be
 * repeated: each sets values, and the worst effect is a duplicate line in the history.
 */
export async function tryWrite<T>(
  connections: Connections,
  how: { readonly durability: Durability; readonly scope: WriteScope },
  work: (transaction: SqlTransaction) => Promise<T>,
): Promise<Attempt<T>> {
  const token = createUniqueId()
  const isDurable = how.durability === 'durable'
  return attempt(connections, async (connection, note) => {
    const begun = connection.begin(formatBegin(how.scope, isDurable ? token : undefined))
    const transaction = createTransaction(connection, begun)
    const value = await work(transaction)
    if (isDurable) note({ token, value })
    transaction.post('COMMIT')
    await transaction.settle()
    return value
  })
}

/**
 * Begins a transaction with the function `dsc_begin`, which takes the locks of the scope: `all` waits for and blocks
 * every scope; a node blocks only itself. A copy never changes its node, so its node can be looked up before the lock
 * is held.
 */
function formatBegin(scope: WriteScope, token: string | undefined): string {
  const node = formatNode(scope)
  const left = token === undefined ? 'NULL' : `'${token}'`
  return `BEGIN ISOLATION LEVEL READ COMMITTED; SELECT dsc_begin(${scope === 'all'}, ${node}, ${left}) AS now_ms`
}

/** An SQL expression for the node of the scope; NULL if it has none. */
function formatNode(scope: WriteScope): string {
  if (scope === 'rows' || scope === 'all') return 'NULL'
  if ('node' in scope) return quoteText(scope.node)
  if ('copyId' in scope) return `(SELECT node FROM copies WHERE copy_id = ${quoteText(scope.copyId)})`
  return `(SELECT node FROM leases WHERE lease_id = ${quoteText(scope.leaseId)})`
}

/** Quotes a text as an SQL literal, under any setting of `standard_conforming_strings`. */
function quoteText(text: string): string {
  const quoted = `'${text.replaceAll("'", "''").replaceAll('\\', '\\\\')}'`
  return text.includes('\\') ? ` E${quoted}` : quoted
}

/** Runs `work` on one snapshot. */
export async function tryRead<T>(
  connections: Connections,
  work: (transaction: SqlTransaction) => Promise<T>,
): Promise<Attempt<T>> {
  return attempt(connections, async (connection) => {
    const transaction = createTransaction(connection)
    transaction.post('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY')
    transaction.post(`SET LOCAL idle_in_transaction_session_timeout = '20s'`)
    const value = await work(transaction)
    transaction.post('COMMIT')
    await transaction.settle()
    return value
  })
}

/** Runs one read-only statement; the client's own time limit ends it if necessary. */
export async function tryStatement(
  connections: Connections,
  sql: string,
  parameters: readonly SqlValue[] = [],
): Promise<Attempt<readonly SqlRow[]>> {
  return attempt(connections, (connection) => createTransaction(connection).all(sql, parameters))
}

/** Runs `body` on a connection and returns the outcome; afterwards the connection is usable or closed. */
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
      return { outcome, error, unsure }
    }
    await connection?.query('ROLLBACK').then(connection.giveBack, connection.destroy)
    return { outcome, error }
  }
}

/**
 * Finds out whether the transaction with this token committed, by trying to leave the same token: that waits for the
 * transaction if it is still running, fails if it committed, and otherwise keeps it from ever committing.
 */
export async function findOutcome(
  connections: Connections,
  token: string,
): Promise<Attempt<'committed' | 'aborted'>> {
  return attempt(connections, async (connection) => {
    const { changes } = await connection.query(
      'INSERT INTO dsc_outcomes (token) VALUES ($1) ON CONFLICT DO NOTHING',
      [token],
    )
    return changes === 0 ? 'committed' : 'aborted'
  })
}

/** Deletes tokens that no attempt can look up any more. */
export async function forgetOldOutcomes(connections: Connections): Promise<Attempt<undefined>> {
  return attempt(connections, async (connection) => {
    await connection.query(`DELETE FROM dsc_outcomes WHERE left_at < now() - interval '1 hour'`)
    return undefined
  })
}
