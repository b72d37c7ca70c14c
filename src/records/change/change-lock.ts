import type { Copy, CopyLock } from '../../model/copy.js'
import type { CopyFilter } from '../contract/record-requests.js'
import { toCopy } from '../database/row-mapping.js'
import { copyConditions } from '../select/select-copy-uses.js'
import type { RecordWrite } from './record-write.js'
import { writeCopyEvent } from './write-event.js'

/** See `RecordStore.setLock`. */
export async function changeLock(
  write: RecordWrite,
  filter: CopyFilter,
  { lock, by }: { readonly lock: CopyLock | null; readonly by?: string | undefined },
): Promise<readonly Copy[]> {
  const { transaction } = write
  const { where, parameters } = copyConditions(filter)
  const rows = await transaction.all(
    `SELECT * FROM copies ${where} ORDER BY dataset, node, created_at_ms`,
    parameters,
  )
  const copies = rows.map(toCopy).filter((copy) => copy.state !== 'evicting')
  for (const copy of copies) {
    if ((copy.lock === null) === (lock === null)) continue
    transaction.post('UPDATE copies SET lock_state = ? WHERE copy_id = ?', [
      lock && JSON.stringify(lock),
      copy.copyId,
    ])
    writeCopyEvent(write, copy, {
      kind: lock ? 'locked' : 'unlocked',
      task: null,
      reason: lock ? `${lock.by}: ${lock.reason}` : 'unlocked',
      detail: lock || by === undefined ? {} : { by, lock: copy.lock },
    })
  }
  return copies.map((copy) => ({ ...copy, lock: lock && (copy.lock ?? lock) }))
}
