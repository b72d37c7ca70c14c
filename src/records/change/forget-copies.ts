import type { Copy } from '../../model/copy.js'
import { toCopy } from '../database/row-mapping.js'
import { keepLayout } from './keep-layout.js'
import type { RecordWrite } from './record-write.js'
import { writeCopyEvent } from './write-event.js'

/** See `RecordStore.forgetCopies`. */
export async function forgetReady(
  write: RecordWrite,
  copyIds: readonly string[],
  reason: string,
): Promise<number> {
  let forgotten = 0
  for (const copyId of copyIds) {
    const row = await write.transaction.get(`SELECT * FROM copies WHERE copy_id = ? AND state = 'ready'`, [
      copyId,
    ])
    if (!row) continue
    await forgetCopy(write, toCopy(row), reason)
    forgotten += 1
  }
  return forgotten
}

/** See `RecordStore.forgetNode`. */
export async function forgetWholeNode(
  write: RecordWrite,
  node: string,
  reason: string,
): Promise<readonly Copy[]> {
  const { transaction } = write
  const copies = (await transaction.all('SELECT * FROM copies WHERE node = ?', [node])).map(toCopy)
  for (const copy of copies) await forgetCopy(write, copy, reason)
  transaction.post('DELETE FROM nodes WHERE node = ?', [node])
  return copies
}

async function forgetCopy(write: RecordWrite, copy: Copy, reason: string): Promise<void> {
  await keepLayout(write.transaction, copy)
  write.transaction.post('DELETE FROM copies WHERE copy_id = ?', [copy.copyId])
  writeCopyEvent(write, copy, {
    kind: 'forgotten',
    task: null,
    reason,
    detail: { version: copy.version, path: copy.path },
  })
}
