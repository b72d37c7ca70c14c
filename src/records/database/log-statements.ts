import { formatElapsed, log } from '../../log/log.js'
import type { SqlDatabase, SqlReader, SqlTransaction } from './sql-database.js'

/**
 * Wraps a database to log each statement with its time. Values are left out: they include gateway keys and URLs as
 * users wrote them.
 */
export function logStatements(database: SqlDatabase): SqlDatabase {
  return {
    ...database,
    ...logReader(database),
    write: (durability, scope, work) =>
      database.write(durability, scope, (transaction) => work(logTransaction(transaction))),
    read: (work) => database.read((transaction) => work(logTransaction(transaction))),
  }
}

function logTransaction(transaction: SqlTransaction): SqlTransaction {
  return {
    ...logReader(transaction),
    get: (sql, parameters) => timed(sql, () => transaction.get(sql, parameters)),
    run: (sql, parameters) => timed(sql, () => transaction.run(sql, parameters)),
    post(sql, parameters) {
      log('debug', `sql ${onOneLine(sql)}: not waited for`)
      transaction.post(sql, parameters)
    },
  }
}

function logReader(reader: SqlReader): SqlReader {
  return {
    all: (sql, parameters) => timed(sql, () => reader.all(sql, parameters)),
    map: (sql, parameters, make) => timed(sql, () => reader.map(sql, parameters, make)),
  }
}

async function timed<Value>(sql: string, ask: () => Promise<Value>): Promise<Value> {
  const beganMs = performance.now()
  try {
    return await ask()
  } finally {
    log('debug', `sql ${onOneLine(sql)}: ${formatElapsed(beganMs)}`)
  }
}

function onOneLine(sql: string): string {
  return sql.trim().replace(/\s+/g, ' ')
}
