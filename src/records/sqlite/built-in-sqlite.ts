import { DatabaseSync, type SQLInputValue, type StatementSync } from 'node:sqlite'

interface Options {
  /** Milliseconds to wait for another connection's transaction. Default: 0. */
  readonly timeout?: number
}

/**
 * Node's own SQLite in the shape of better-sqlite3, as far as a record needs it: it is open after 2 ms of a processor
 * instead of 12, which is what a warm `dsc prepare` waits for. Its failures have no codes of SQLite, so only that way,
 * which leaves every failure to the whole program, may use it (`scripts/bundles.mjs`).
 */
export class BuiltInDatabase {
  readonly name: string
  readonly #database: DatabaseSync

  constructor(path: string, options: Options = {}) {
    this.name = path
    this.#database = new DatabaseSync(path, options)
  }

  get inTransaction(): boolean {
    return this.#database.isTransaction
  }

  prepare(sql: string): Statement {
    return new Statement(this.#database.prepare(sql))
  }

  pragma(words: string, { simple = false } = {}): unknown {
    const statement = this.#database.prepare(`PRAGMA ${words}`)
    if (!simple) return statement.all()
    return Object.values(statement.get() ?? {})[0]
  }

  exec(sql: string): void {
    this.#database.exec(sql)
  }

  close(): void {
    this.#database.close()
  }
}

class Statement {
  readonly #statement: StatementSync

  constructor(statement: StatementSync) {
    this.#statement = statement
  }

  all(...parameters: SQLInputValue[]): unknown[] {
    return this.#statement.all(...parameters)
  }

  get(...parameters: SQLInputValue[]): unknown {
    return this.#statement.get(...parameters)
  }

  iterate(...parameters: SQLInputValue[]): Iterable<unknown> {
    return this.#statement.iterate(...parameters)
  }

  run(...parameters: SQLInputValue[]): { readonly changes: number } {
    return { changes: Number(this.#statement.run(...parameters).changes) }
  }
}
