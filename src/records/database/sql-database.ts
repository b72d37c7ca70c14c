import type { ChangeWait } from '../contract/record-store.js'
/** A value that both engines store and return identically. JSON travels as text, times and sizes as numbers. */
export type SqlValue = string | number | null
/** Column → value. */
export type SqlRow = Readonly<Record<string, SqlValue>>

/** Accepts queries. Parameters are written `?` in every engine. */
export interface SqlReader {
  all(sql: string, parameters?: readonly SqlValue[]): Promise<readonly SqlRow[]>
  /** Like `all`, but reduces each row with `make` before reading the next, where the engine can. */
  map<T>(sql: string, parameters: readonly SqlValue[], make: (row: SqlRow) => T): Promise<readonly T[]>
}

/** Statements inside one transaction. */
export interface SqlTransaction extends SqlReader {
  get(sql: string, parameters?: readonly SqlValue[]): Promise<SqlRow | undefined>
  /** Runs a change and returns the number of rows it touched. */
  run(sql: string, parameters?: readonly SqlValue[]): Promise<number>
  /**
   * Runs a change in its turn without waiting for the outcome. If it fails, the next statement or the commit fails with
   * its error. Where the engine is across a network, it travels with them.
   */
  post(sql: string, parameters?: readonly SqlValue[]): void
}

/**
 * `durable` survives power loss once committed; `quick` survives the death of any process but may be lost with
 * the machine: for facts that die with the machine anyway, such as the lease of a process.
 */
export type Durability = 'durable' | 'quick'

/**
 * The rows that a write's decision depends on, so that an engine with many concurrent writers need not block all of
 * them: every row of one node's copies and leases (named by the node, or by a copy or lease there), only the rows that
 * its one statement names (`rows`), or anything (`all`). A write must not read rows outside its scope.
 */
export type WriteScope =
  | { readonly node: string }
  | { readonly copyId: string }
  | { readonly leaseId: string }
  | 'rows'
  | 'all'

/**
 * The database that the record builds on: serializable transactions over one schema. `all` runs one statement, which is
 * a snapshot by itself and costs one round trip where `read` costs two.
 */
export interface SqlDatabase extends SqlReader {
  /** For messages; contains no secrets. */
  readonly location: string
  /** Whether this user can only read: writes are refused, and reads show the state when it was opened. */
  readonly isReadOnly?: boolean
  /**
   * Runs `work` as if its scope had no other writer, and commits unless `work` throws. An engine that loses its
   * connection calls `work` again, so it must have no effects but its statements.
   */
  write<T>(
    durability: Durability,
    scope: WriteScope,
    work: (transaction: SqlTransaction) => Promise<T>,
  ): Promise<T>
  /** Runs `work` on one unchanging snapshot. */
  read<T>(work: (transaction: SqlTransaction) => Promise<T>): Promise<T>
  /** The clock that all users of the record share, Unix epoch in ms. */
  nowMs(): number
  /** See `RecordStore.waitForChange`. */
  waitForChange(wait: ChangeWait): Promise<void>
  /** See `RecordStore.findHindrance`. Missing: nothing can hinder writes. */
  findHindrance?(): Promise<string | undefined>
  /** Returns a bounded part of the unused space to the file system. Missing: the engine does so itself. */
  giveBackRoom?(): Promise<void>
  close(): Promise<void>
}
