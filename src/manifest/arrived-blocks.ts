import type { ManifestStatements } from './manifest-statements.js'

/**
 * Which blocks of objects are already in their files, for unfinished parts (`BlockSet`). The table is created with the
 * first block and dropped when the copy is published.
 */
export class ArrivedBlocks {
  readonly #statements: ManifestStatements

  constructor(statements: ManifestStatements) {
    this.#statements = statements
  }

  find(objectId: number): Uint8Array | undefined {
    if (!this.#isThere()) return undefined
    const sql = 'SELECT bits FROM arrived_blocks WHERE object_id = ?'
    return this.#statements.get<{ bits: Uint8Array }>(sql, objectId)?.bits
  }

  write(objectId: number, bits: Uint8Array): void {
    this.#statements.run(
      'CREATE TABLE IF NOT EXISTS arrived_blocks (object_id INTEGER PRIMARY KEY, bits BLOB NOT NULL)',
    )
    this.#statements.run('INSERT OR REPLACE INTO arrived_blocks VALUES (?, ?)', objectId, Buffer.from(bits))
  }

  forget(objectId: number): void {
    if (this.#isThere()) this.#statements.run('DELETE FROM arrived_blocks WHERE object_id = ?', objectId)
  }

  /** Forgets all blocks and drops their table. */
  drop(): void {
    this.#statements.run('DROP TABLE IF EXISTS arrived_blocks')
  }

  #isThere(): boolean {
    const sql = `SELECT 1 FROM sqlite_master WHERE name = 'arrived_blocks'`
    return this.#statements.get(sql) !== undefined
  }
}
