import { BoundedMap } from '../../model/bounded-map.js'
import type { SqlTransaction, SqlValue } from '../database/sql-database.js'
import type { Connection, QueryResult } from './connection.js'

/** Statements with `?` parameters; `settle` waits for every sent statement. */
interface PostgresTransaction extends SqlTransaction {
  /** Rejects with the error of the first failed statement; later ones only repeat that it failed. */
  settle(): Promise<void>
}

/** Statements on a connection; `begun` resolves when the transaction's first statements are answered. */
export function createTransaction(connection: Connection, begun?: Promise<void>): PostgresTransaction {
  const sent: Promise<unknown>[] = []
  let settled = 0
  const note = <Answer>(answer: Promise<Answer>): Promise<Answer> => {
    answer.catch(() => {}) // `settle` reports it
    sent.push(answer)
    return answer
  }
  const settle = async () => {
    for (let index = settled; index < sent.length; index++) {
      await sent[index]
      settled = Math.max(settled, index + 1)
    }
  }
  const send = async (sql: string, parameters: readonly SqlValue[]): Promise<QueryResult> => {
    const answer = note(connection.query(numberParameters(sql), parameters))
    await settle()
    return answer
  }
  if (begun) void note(begun)
  return {
    all: async (sql, parameters = []) => (await send(sql, parameters)).rows,
    map: async (sql, parameters, make) => (await send(sql, parameters)).rows.map(make),
    get: async (sql, parameters = []) => (await send(sql, parameters)).rows[0],
    run: async (sql, parameters = []) => (await send(sql, parameters)).changes,
    post: (sql, parameters = []) => {
      void note(connection.query(numberParameters(sql), parameters))
    },
    settle,
  }
}

/** The record has about forty statements; lists of values make a few more of each. */
const numbered = new BoundedMap<string, string>(1000)

/** Rewrites `?` parameters as PostgreSQL's `$1`, `$2`, …. A `?` inside quotes stays. */
export function numberParameters(sql: string): string {
  return numbered.getOrMake(sql, () => {
    let count = 0
    return sql.replace(/'[^']*'|"[^"]*"|\?/g, (found) => (found === '?' ? `$${++count}` : found))
  })
}
