import type { Copy } from '../../model/copy.js'
import type { RecordEvent } from '../../model/record-event.js'
import type { SqlTransaction } from '../database/sql-database.js'
import type { RecordWrite } from './record-write.js'

/** Adds a line to the history, in the transaction of the change. */
export function writeEvent(transaction: SqlTransaction, event: Omit<RecordEvent, 'sequence'>): void {
  transaction.post(
    'INSERT INTO events (at_ms, kind, node, dataset, copy_id, task, reason, detail, failure_id) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)',
    [
      event.atMs,
      event.kind,
      event.node,
      event.dataset,
      event.copyId,
      event.task,
      event.reason,
      JSON.stringify(event.detail),
      typeof event.detail.id === 'string' ? event.detail.id : null,
    ],
  )
}

/** Adds a line about one copy. */
export function writeCopyEvent(
  { transaction, nowMs }: RecordWrite,
  { copyId, dataset, node }: Pick<Copy, 'copyId' | 'dataset' | 'node'>,
  said: Pick<RecordEvent, 'kind' | 'task' | 'reason' | 'detail'>,
): void {
  writeEvent(transaction, { ...said, atMs: nowMs, node, dataset, copyId })
}
