import type { ChangeWait } from '../contract/record-store.js'
/** A value that both engines store and return alike. JSON travels as text, times and sizes as numbers. */
export type SqlValue = string | number | null
/** Column → value. */
export type SqlRow = Readonly<Record<string, SqlValue>>

/** Something that can be asked. Parameters are written `?` in every engine. */
export interface SqlReader {
  all(sql: string, parameters?: readonly SqlValue[]): Promise<readonly SqlRow[]>
  /** `all`, each row made into something smaller before the next is read, where the engine can. */
  map<T>(sql: string, parameters: readonly SqlValue[], make: (row: SqlRow) => T): Promise<readonly T[]>
}

/** Statements inside one transaction. */
export interface SqlTransaction extends SqlReader {
  get(sql: string, parameters?: readonly SqlValue[]): Promise<SqlRow | undefined>
  /** Runs a change and returns the number of rows it touched. */
  run(sql: string, parameters?: readonly SqlValue[]): Promise<number>
  /**
   * Makes a change whose outcome nobody waits for, in its turn; what it fails with, the next statement or the
   * commit fails with. Where the engine is across a network, it travels with them.
   */
  post(sql: string, parameters?: readonly SqlValue[]): void
}

/**
 * `durable` survives power loss once committed; `quick` survives the death of any process but may be lost with
 * the machine: for facts that die with the machine anyway, such as the lease of a process.
 */
export type Durability = 'durable' | 'quick'

/**
 * What a write decides upon, so that an engine with many writers at once need not hold up all of them: every row
 * of one node's copies and leases (named by the node, or by a copy or lease there), only the rows that its one
 * statement names (`rows`), or anything (`all`). A write must not look at rows outside of its scope.
 */
export type WriteScope =
  | { readonly node: string }
  | { readonly copyId: string }
  | { readonly leaseId: string }
  | 'rows'
  | 'all'

/**
 * What the record needs of an engine: serializable transactions over one schema. `all` runs one statement, which
 * is a snapshot by itself, and costs one round trip where `read` costs two.
 */
export interface SqlDatabase extends SqlReader {
  /** Without secrets: for messages. */
  readonly location: string
  /** Whether this user may only look: what writes is refused, and what is read is as it was when it was opened. */
  readonly isReadOnly?: boolean
  /**
   * Runs `work` as if no other writer of its scope existed, and commits unless it throws. An engine that loses
   * its connection calls it again, so `work` must have no effects but its statements.
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
  /** See `RecordStore.waitForChange`. Missing: the engine cannot tell of changes. */
  waitForChange?(wait: ChangeWait): Promise<void>
  /** See `RecordStore.findHindrance`. Missing: nothing can hinder writes. */
  findHindrance?(): Promise<string | undefined>
  /** Gives a bounded part of the room that nothing needs any more back to the file system. Missing: the engine does so itself. */
  giveBackRoom?(): Promise<void>
  close(): Promise<void>
}
