import type { Copy } from '../../model/copy.js'
import { COPY_COLUMNS, copyValues, stripeValue } from '../database/row-mapping.js'
import type { SqlTransaction } from '../database/sql-database.js'
import type { RecordWrite } from './record-write.js'
import { writeCopyEvent } from './write-event.js'

/** Adds the row of a copy that cannot exist yet. */
export function insertCopy(transaction: SqlTransaction, copy: Copy): void {
  transaction.post(formatInsert(copy), copyValues(copy))
}

/** See `RecordStore.addAdopted`. */
export async function insertAdopted(write: RecordWrite, copy: Copy): Promise<boolean> {
  const { transaction } = write
  // A copy being staged will be ready under this version too, and there can be only one.
  const staged = await transaction.get(
    `SELECT 1 AS found FROM copies WHERE dataset = ? AND node = ? AND version = ? AND state = 'staging'
      AND coalesce(stripe, '') = ?`,
    [copy.dataset, copy.node, copy.version, stripeValue(copy.stripe) ?? ''],
  )
  if (staged) return false
  const added = await transaction.run(`${formatInsert(copy)} ON CONFLICT DO NOTHING`, copyValues(copy))
  if (added === 0) return false
  writeCopyEvent(write, copy, {
    kind: 'adopted',
    task: null,
    reason: `found on disk at ${copy.path}`,
    detail: { version: copy.version },
  })
  return true
}

function formatInsert(copy: Copy): string {
  const places = copyValues(copy).map(() => '?')
  return `INSERT INTO copies (${COPY_COLUMNS}) VALUES (${places.join(', ')})`
}
