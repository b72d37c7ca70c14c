import type Database from 'better-sqlite3'

/** Prepared statements of one manifest, each prepared on first use. */
export class ManifestStatements {
  readonly #db: Database.Database
  readonly #prepared = new Map<string, Database.Statement>()

  constructor(db: Database.Database) {
    this.#db = db
  }

  /** Runs a statement that returns no rows. */
  run(sql: string, ...values: readonly unknown[]): void {
    this.#prepare(sql).run(...values)
  }

  /** The first row; undefined without one. */
  get<Row>(sql: string, ...values: readonly unknown[]): Row | undefined {
    return this.#prepare(sql).get(...values) as Row | undefined
  }

  /** Every row at once. */
  all<Row>(sql: string, ...values: readonly unknown[]): Row[] {
    return this.#prepare(sql).all(...values) as Row[]
  }

  /**
   * Rows, a page at a time, so that they may be changed between two pages: `sql` takes the key of the last row before
   * the page, and `keyOf` reads it from a row. Ends at the first empty page.
   */
  *pages<Row>(
    sql: string,
    after: string | number,
    keyOf: (row: Row) => string | number,
  ): Generator<readonly Row[], undefined> {
    for (let last = after; ; ) {
      const rows = this.all<Row>(sql, last)
      if (rows.length === 0) return
      last = keyOf(rows.at(-1)!)
      yield rows
    }
  }

  /** Drops the prepared statements: SQLite detaches no database that a statement still names. */
  clear(): void {
    this.#prepared.clear()
  }

  #prepare(sql: string): Database.Statement {
    let statement = this.#prepared.get(sql)
    if (statement === undefined) {
      statement = this.#db.prepare(sql)
      this.#prepared.set(sql, statement)
    }
    return statement
  }
}
