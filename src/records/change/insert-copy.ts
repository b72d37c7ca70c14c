import type { Copy } from '../../model/copy.js'
import type { Admission } from '../../policy/plan-admission.js'
import type { ReturnedCopy } from '../contract/record-requests.js'
import type { Decide } from '../contract/record-store.js'
import { COPY_COLUMNS, copyValues, stripeValue } from '../database/row-mapping.js'
import type { SqlTransaction } from '../database/sql-database.js'
import { decideOnNode } from '../select/decide-on-node.js'
import { selectCopyUses } from '../select/select-copy-uses.js'
import type { RecordWrite } from './record-write.js'
import { writeCopyEvent } from './write-event.js'

/** Adds the row of a copy that cannot exist yet. */
export function insertCopy(transaction: SqlTransaction, copy: Copy): void {
  transaction.post(formatInsert(copy), copyValues(copy))
}

/** See `RecordStore.addAdopted`. */
export async function insertAdopted(write: RecordWrite, copy: Copy): Promise<boolean> {
  if (!(await insertFound(write.transaction, copy))) return false
  writeCopyEvent(write, copy, {
    kind: 'adopted',
    task: null,
    reason: `found on disk at ${copy.path}`,
    detail: { version: copy.version },
  })
  return true
}

/** See `RecordStore.returnCopy`. */
export async function insertReturned(
  write: RecordWrite,
  { copy, reason, undoes }: ReturnedCopy,
  decide: Decide<Admission>,
): Promise<Admission | { readonly outcome: 'present' }> {
  const { transaction, nowMs } = write
  const { dataset, node } = copy
  const own = await selectCopyUses(transaction, { dataset, node }, nowMs)
  const isPresent = own.some(
    ({ stripe, state }) => stripeValue(stripe) === stripeValue(copy.stripe) && state !== 'evicting',
  )
  if (isPresent) return { outcome: 'present' }
  const admission = await decideOnNode(transaction, { node, nowMs }, decide)
  if (admission.outcome !== 'admit' || admission.plan.victims.length > 0) return admission
  if (!(await insertFound(transaction, copy))) return { outcome: 'present' }
  writeCopyEvent(write, copy, {
    kind: 'undone',
    task: null,
    reason,
    detail: { version: copy.version, undoes },
  })
  return admission
}

async function insertFound(transaction: SqlTransaction, copy: Copy): Promise<boolean> {
  // A copy being staged will be ready under this version too, and there can be only one.
  const staged = await transaction.get(
    `SELECT 1 AS found FROM copies WHERE dataset = ? AND node = ? AND version = ? AND state = 'staging'
      AND coalesce(stripe, '') = ?`,
    [copy.dataset, copy.node, copy.version, stripeValue(copy.stripe) ?? ''],
  )
  if (staged) return false
  const added = await transaction.run(`${formatInsert(copy)} ON CONFLICT DO NOTHING`, copyValues(copy))
  return added > 0
}

function formatInsert(copy: Copy): string {
  const places = copyValues(copy).map(() => '?')
  return `INSERT INTO copies (${COPY_COLUMNS}) VALUES (${places.join(', ')})`
}
