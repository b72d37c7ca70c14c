import type { RecordWrite } from '../change/record-write.js'
import { writeCopyEvent } from '../change/write-event.js'
import type { EndedStaging, PublishedCopy, StagingProgress } from '../contract/record-requests.js'
import { selectStaged } from './select-staged.js'

/** See `RecordStore.reportProgress`. */
export async function renewStaging(
  { transaction, nowMs }: RecordWrite,
  progress: StagingProgress,
): Promise<boolean> {
  const renewed = await transaction.run(
    'UPDATE leases SET renewed_at_ms = ?, expires_at_ms = ? WHERE lease_id = ? AND copy_id = ?',
    [nowMs, progress.expiresAtMs, progress.stageLeaseId, progress.copyId],
  )
  if (renewed === 0) return false
  transaction.post('UPDATE copies SET written_bytes = ? WHERE copy_id = ?', [
    progress.writtenBytes,
    progress.copyId,
  ])
  return true
}

/** See `RecordStore.markReady`. */
export async function markCopyReady(write: RecordWrite, published: PublishedCopy): Promise<boolean> {
  const { transaction, nowMs } = write
  const copy = await selectStaged(transaction, published)
  if (copy?.state !== 'staging') return false
  transaction.post(
    `UPDATE copies SET state = 'ready', directory = ?, path = ?, charged_bytes = ?, charged_inodes = ?,
      written_bytes = ?, last_used_at_ms = ?, ready_at_ms = ?, origin = ? WHERE copy_id = ?`,
    [
      published.directory,
      published.path,
      published.chargedBytes,
      published.chargedInodes,
      published.chargedBytes,
      nowMs,
      nowMs,
      published.origin ?? copy.origin,
      copy.copyId,
    ],
  )
  transaction.post('DELETE FROM leases WHERE lease_id = ?', [published.stageLeaseId])
  writeCopyEvent(write, copy, {
    kind: 'staged',
    task: copy.stagerTask,
    reason: published.reason,
    detail: published.detail,
  })
  return true
}

/** See `RecordStore.endStaging`. */
export async function endStaging(write: RecordWrite, ended: EndedStaging): Promise<void> {
  const { transaction } = write
  const copy = await selectStaged(transaction, ended)
  transaction.post('DELETE FROM leases WHERE lease_id IN (?, ?)', [
    ended.useLeaseId ?? ended.stageLeaseId,
    ended.stageLeaseId,
  ])
  if (!copy) return
  if (ended.failure) {
    writeCopyEvent(write, copy, {
      kind: ended.failure.code === 'QUOTA_EXCEEDED' ? 'refused' : 'staging-failed',
      task: copy.stagerTask,
      reason: ended.failure.message,
      detail: { ...ended.failure, stageLeaseId: ended.stageLeaseId },
    })
  }
  if (ended.isForgotten) transaction.post('DELETE FROM copies WHERE copy_id = ?', [copy.copyId])
}
