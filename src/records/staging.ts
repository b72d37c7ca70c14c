import type { Copy, CopyUse } from '../model/copy.js'
import { isLeaseLive, type Lease } from '../model/lease.js'
import { createUniqueId } from '../platform/unique-id.js'
import type { Admission } from '../policy/plan-admission.js'
import { writeEvent } from './event-writing.js'
import { markEvicting, selectCopyUses } from './evicting.js'
import { grantLease, leaseReadyCopy, selectLeases } from './leasing.js'
import type {
  AdmitRequest,
  EndedStaging,
  Joined,
  JoinRequest,
  PublishedCopy,
  RecordStore,
  StagingProgress,
} from './record-store.js'
import { COPY_COLUMNS, copyValues, toCopy } from './row-mapping.js'
import type { SqlTransaction } from './sql-database.js'

export async function joinStaging(
  transaction: SqlTransaction,
  request: JoinRequest,
  nowMs: number,
): Promise<Joined> {
  if (!request.isRefresh) {
    const ready = await leaseReadyCopy(transaction, request, nowMs)
    if (ready) return { outcome: 'ready', ...ready }
  }
  const found = await findStaging(transaction, request)
  if (found?.stageLease && isLeaseLive(found.stageLease, nowMs)) {
    const leaseId = await grantLease(transaction, found.copy, 'use', request.lease, nowMs)
    return { outcome: 'wait', copy: found.copy, leaseId, stageLease: found.stageLease }
  }
  // Dead stagers have no lease any more. One that is there but expired may still be writing into its
  // directory, so nobody may resume that one.
  const isResumed = found !== undefined && found.stageLease === undefined
  if (found && !isResumed) {
    const victim = { copy: found.copy, reason: 'its stager fell silent' }
    await markEvicting(transaction, [victim], request.lease.task, nowMs)
  }
  const copy = found && isResumed ? found.copy : await insertReserved(transaction, request, nowMs)
  const leaseId = await grantLease(transaction, copy, 'use', request.lease, nowMs)
  const stageLeaseId = await grantLease(transaction, copy, 'stage', request.stager, nowMs)
  await writeEvent(transaction, {
    ...subject(copy, request.lease.task, nowMs),
    kind: isResumed ? 'staging-taken-over' : 'staging-started',
    reason: `${request.lease.task} ${isResumed ? 'goes on with a staging that was left' : 'stages it'}`,
    detail: { source: request.source.source, stageLeaseId },
  })
  return { outcome: 'stage', copy, leaseId, stageLeaseId, isResumed }
}

async function findStaging(
  transaction: SqlTransaction,
  request: JoinRequest,
): Promise<{ readonly copy: Copy; readonly stageLease: Lease | undefined } | undefined> {
  const row = await transaction.get(
    `SELECT * FROM copies WHERE dataset = ? AND node = ? AND state IN ('reserved', 'staging')`,
    [request.dataset, request.node],
  )
  if (!row) return undefined
  const copy = toCopy(row)
  const leases = await selectLeases(transaction, { copyId: copy.copyId })
  return { copy, stageLease: leases.find(({ purpose }) => purpose === 'stage') }
}

export async function admitCopy(
  transaction: SqlTransaction,
  request: AdmitRequest,
  decide: (copies: readonly CopyUse[]) => Admission,
  nowMs: number,
): ReturnType<RecordStore['admit']> {
  const copy = await selectStaged(transaction, request)
  if (!copy) return { outcome: 'lost' }
  const twin = await transaction.get(
    `SELECT * FROM copies WHERE dataset = ? AND node = ? AND version = ? AND state = 'ready'`,
    [copy.dataset, copy.node, request.version],
  )
  if (twin) return { outcome: 'same-version', copy: await joinTwin(transaction, copy, toCopy(twin), nowMs) }
  const admission = decide(await selectCopyUses(transaction, { node: copy.node }, nowMs))
  if (admission.outcome !== 'admit') return admission
  await markEvicting(transaction, admission.plan.victims, copy.lastTask, nowMs)
  await transaction.run(
    `UPDATE copies SET state = 'staging', version = ?, files = ?, content_bytes = ?, charged_bytes = ?,
      charged_inodes = ? WHERE copy_id = ?`,
    [
      request.version,
      request.files,
      request.contentBytes,
      request.chargedBytes,
      request.chargedInodes,
      copy.copyId,
    ],
  )
  return admission
}

export async function noteProgress(
  transaction: SqlTransaction,
  progress: StagingProgress,
  nowMs: number,
): Promise<boolean> {
  const renewed = await transaction.run(
    'UPDATE leases SET renewed_at_ms = ?, expires_at_ms = ? WHERE lease_id = ? AND copy_id = ?',
    [nowMs, progress.expiresAtMs, progress.stageLeaseId, progress.copyId],
  )
  if (renewed === 0) return false
  await transaction.run('UPDATE copies SET written_bytes = ? WHERE copy_id = ?', [
    progress.writtenBytes,
    progress.copyId,
  ])
  return true
}

export async function publishCopy(
  transaction: SqlTransaction,
  published: PublishedCopy,
  nowMs: number,
): Promise<boolean> {
  const copy = await selectStaged(transaction, published)
  if (copy?.state !== 'staging') return false
  await transaction.run(
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
  await transaction.run('DELETE FROM leases WHERE lease_id = ?', [published.stageLeaseId])
  await writeEvent(transaction, {
    ...subject(copy, copy.lastTask, nowMs),
    kind: 'staged',
    reason: published.reason,
    detail: published.detail,
  })
  return true
}

export async function endStagingOf(
  transaction: SqlTransaction,
  ended: EndedStaging,
  nowMs: number,
): Promise<void> {
  const copy = await selectStaged(transaction, ended)
  await transaction.run('DELETE FROM leases WHERE lease_id IN (?, ?)', [ended.useLeaseId, ended.stageLeaseId])
  if (!copy) return
  if (ended.failure) {
    await writeEvent(transaction, {
      ...subject(copy, copy.lastTask, nowMs),
      kind: ended.failure.code === 'QUOTA_EXCEEDED' ? 'refused' : 'staging-failed',
      reason: ended.failure.message,
      detail: { ...ended.failure, stageLeaseId: ended.stageLeaseId },
    })
  }
  if (ended.isForgotten) await transaction.run('DELETE FROM copies WHERE copy_id = ?', [copy.copyId])
}

async function insertReserved(
  transaction: SqlTransaction,
  request: JoinRequest,
  nowMs: number,
): Promise<Copy> {
  const copyId = createUniqueId()
  const directory = request.directoryOf(copyId)
  const copy: Copy = {
    copyId,
    dataset: request.dataset,
    node: request.node,
    version: null,
    state: 'reserved',
    origin: request.origin,
    source: request.source,
    directory,
    path: directory,
    chargedBytes: 0,
    chargedInodes: 0,
    writtenBytes: 0,
    files: 0,
    contentBytes: 0,
    lock: null,
    lastTask: request.lease.task,
    lastUsedAtMs: nowMs,
    createdAtMs: nowMs,
    readyAtMs: null,
  }
  const places = copyValues(copy).map(() => '?')
  await transaction.run(
    `INSERT INTO copies (${COPY_COLUMNS}) VALUES (${places.join(', ')})`,
    copyValues(copy),
  )
  return copy
}

/** The copy, if it is still being staged under this stage lease. */
async function selectStaged(
  transaction: SqlTransaction,
  stage: { readonly copyId: string; readonly stageLeaseId: string },
): Promise<Copy | undefined> {
  const row = await transaction.get(
    `SELECT copies.* FROM copies JOIN leases ON leases.copy_id = copies.copy_id
      WHERE copies.copy_id = ? AND leases.lease_id = ? AND copies.state IN ('reserved', 'staging')`,
    [stage.copyId, stage.stageLeaseId],
  )
  return row && toCopy(row)
}

/** The source has not changed: whoever leased the new copy is given the ready one instead. */
async function joinTwin(transaction: SqlTransaction, copy: Copy, twin: Copy, nowMs: number): Promise<Copy> {
  const uses = await selectLeases(transaction, { copyId: copy.copyId })
  for (const use of uses) {
    if (use.purpose !== 'stage') await grantLease(transaction, twin, use.purpose, use, nowMs)
  }
  await transaction.run('UPDATE copies SET source = ? WHERE copy_id = ?', [
    JSON.stringify(copy.source),
    twin.copyId,
  ])
  await transaction.run('DELETE FROM copies WHERE copy_id = ?', [copy.copyId])
  return { ...twin, source: copy.source, lastTask: copy.lastTask, lastUsedAtMs: nowMs }
}

function subject(copy: Copy, task: string | null, nowMs: number) {
  return { atMs: nowMs, node: copy.node, dataset: copy.dataset, copyId: copy.copyId, task }
}
