import { DscError } from '../../failure/dsc-error.js'
import type { SqlTransaction } from './sql-database.js'

/** Reads the schema version of the open record: 0 for a new one. */
async function readSchemaVersion(transaction: SqlTransaction): Promise<number> {
  await transaction.run('CREATE TABLE IF NOT EXISTS dsc_schema (version INTEGER NOT NULL)')
  const row = await transaction.get('SELECT max(version) AS version FROM dsc_schema')
  return Number(row?.version ?? 0)
}

/**
 * Migrates the record to the newest version this dsc knows, inside the caller's transaction. Throws RECORD_NEWER, and
 * changes nothing, if a newer dsc wrote it: its meaning is unknown.
 */
export async function migrate(
  transaction: SqlTransaction,
  migrations: readonly (readonly string[])[],
  location: string,
): Promise<void> {
  const found = await readSchemaVersion(transaction)
  if (found > migrations.length) {
    throw new DscError(
      'RECORD_NEWER',
      `the record ${location} has schema version ${found}, this dsc knows versions up to ${migrations.length}`,
      { hint: 'use the newer dsc that wrote it; nothing was changed' },
    )
  }
  for (let version = found + 1; version <= migrations.length; version++) {
    for (const statement of migrations[version - 1]!) await transaction.run(statement)
    await transaction.run('INSERT INTO dsc_schema (version) VALUES (?)', [version])
  }
}
