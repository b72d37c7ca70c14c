import type { SqlTransaction } from '../sql-database.js'
import type { Connection } from './connections.js'

/** Statements with `?` parameters on a connection that has begun a transaction. */
export function createTransaction(connection: Connection): SqlTransaction {
  return {
    all: async (sql, parameters = []) => (await connection.query(numberParameters(sql), parameters)).rows,
    map: async (sql, parameters, make) =>
      (await connection.query(numberParameters(sql), parameters)).rows.map(make),
    get: async (sql, parameters = []) => (await connection.query(numberParameters(sql), parameters)).rows[0],
    run: async (sql, parameters = []) => (await connection.query(numberParameters(sql), parameters)).changes,
  }
}

const numbered = new Map<string, string>()
/** The record has some forty statements; lists of values make a few more of each. */
const MOST_REMEMBERED = 1000

/** Writes the parameters `?` as PostgreSQL's `$1`, `$2`, …. A `?` inside quotes stays what it is. */
export function numberParameters(sql: string): string {
  const known = numbered.get(sql)
  if (known !== undefined) return known
  let count = 0
  const result = sql.replace(/'[^']*'|"[^"]*"|\?/g, (found) => (found === '?' ? `$${++count}` : found))
  if (numbered.size >= MOST_REMEMBERED) numbered.clear()
  numbered.set(sql, result)
  return result
}
