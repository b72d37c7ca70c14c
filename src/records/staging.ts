import type { Copy, CopyUse } from '../model/copy.js'
import { isLeaseLive, type Lease } from '../model/lease.js'
import { createUniqueId } from '../platform/unique-id.js'
import type { Admission } from '../policy/plan-admission.js'
import { writeEvent } from './event-writing.js'
import { markEvicting, selectCopyUses } from './evicting.js'
import { addLease, grantLease, leaseReadyCopy, selectLeases } from './leasing.js'
import type {
  AdmitRequest,
  EndedStaging,
  Joined,
  JoinRequest,
  PublishedCopy,
  RecordStore,
  StagingProgress,
} from './record-store.js'
import { COPY_COLUMNS, copyValues, formatStripe, toCopy, toLease } from './row-mapping.js'
import type { SqlTransaction } from './sql-database.js'

export async function joinStaging(
  transaction: SqlTransaction,
  request: JoinRequest,
  nowMs: number,
): Promise<Joined> {
  const [ready, found] = await Promise.all([
    request.isRefresh ? undefined : leaseReadyCopy(transaction, request, nowMs),
    findStaging(transaction, request),
  ])
  if (ready) return { outcome: 'ready', ...ready }
  if (found?.stageLease && isLeaseLive(found.stageLease, nowMs)) {
    const leaseId = await grantLease(transaction, found.copy, 'use', request.lease, nowMs)
    return { outcome: 'wait', copy: found.copy, leaseId, stageLease: found.stageLease }
  }
  // Dead stagers have no lease any more. One that is there but expired may still be writing into its
  // directory, so nobody may resume that one.
  const isResumed = found !== undefined && found.stageLease === undefined
  if (found && !isResumed) {
    const victim = { copy: found.copy, reason: 'its stager fell silent' }
    markEvicting(transaction, [victim], request.lease.task, nowMs)
  }
  const copy = found && isResumed ? found.copy : insertReserved(transaction, request, nowMs)
  const leaseId = isResumed
    ? await grantLease(transaction, copy, 'use', request.lease, nowMs)
    : addLease(transaction, copy, 'use', request.lease, nowMs)
  const stageLeaseId = addLease(transaction, copy, 'stage', request.stager, nowMs)
  writeEvent(transaction, {
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
  const of = [request.dataset, request.node, formatStripe(request.stripe) ?? '']
  const isStaging = `dataset = ? AND node = ? AND coalesce(stripe, '') = ? AND state IN ('reserved', 'staging')`
  const [row, lease] = await Promise.all([
    transaction.get(`SELECT * FROM copies WHERE ${isStaging}`, of),
    transaction.get(
      `SELECT leases.* FROM leases JOIN copies ON copies.copy_id = leases.copy_id
        WHERE ${isStaging} AND purpose = 'stage'`,
      of,
    ),
  ])
  return row && { copy: toCopy(row), stageLease: lease && toLease(lease) }
}

export async function admitCopy(
  transaction: SqlTransaction,
  request: AdmitRequest,
  decide: (copies: readonly CopyUse[]) => Admission,
  nowMs: number,
): ReturnType<RecordStore['admit']> {
  const [copy, twin, neighbours] = await Promise.all([
    selectStaged(transaction, request),
    transaction.get(
      `SELECT twin.* FROM copies JOIN copies twin ON twin.dataset = copies.dataset AND twin.node = copies.node
        WHERE copies.copy_id = ? AND twin.version = ? AND twin.state = 'ready'
          AND coalesce(twin.stripe, '') IN ('', coalesce(copies.stripe, ''))`,
      [request.copyId, request.version],
    ),
    selectCopyUses(transaction, { sameNodeAs: request.copyId }, nowMs),
  ])
  if (!copy) return { outcome: 'lost' }
  if (twin) return { outcome: 'same-version', copy: await joinTwin(transaction, copy, toCopy(twin), nowMs) }
  const admission = decide(neighbours)
  if (admission.outcome !== 'admit') return admission
  markEvicting(transaction, admission.plan.victims, copy.lastTask, nowMs)
  transaction.post(
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
  transaction.post('UPDATE copies SET written_bytes = ? WHERE copy_id = ?', [
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
  writeEvent(transaction, {
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
  transaction.post('DELETE FROM leases WHERE lease_id IN (?, ?)', [
    ended.useLeaseId ?? ended.stageLeaseId,
    ended.stageLeaseId,
  ])
  if (!copy) return
  if (ended.failure) {
    writeEvent(transaction, {
      ...subject(copy, copy.lastTask, nowMs),
      kind: ended.failure.code === 'QUOTA_EXCEEDED' ? 'refused' : 'staging-failed',
      reason: ended.failure.message,
      detail: { ...ended.failure, stageLeaseId: ended.stageLeaseId },
    })
  }
  if (ended.isForgotten) transaction.post('DELETE FROM copies WHERE copy_id = ?', [copy.copyId])
}

function insertReserved(transaction: SqlTransaction, request: JoinRequest, nowMs: number): Copy {
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
    ...(request.stripe && { stripe: request.stripe }),
  }
  const places = copyValues(copy).map(() => '?')
  transaction.post(`INSERT INTO copies (${COPY_COLUMNS}) VALUES (${places.join(', ')})`, copyValues(copy))
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
  // Granting one lease after the other leaves whichever the clock, perhaps set back, puts last.
  const isUsed = uses.some(({ purpose }) => purpose === 'use')
  const lastTask = isUsed ? copy.lastTask : twin.lastTask
  transaction.post('UPDATE copies SET source = ?, last_task = ? WHERE copy_id = ?', [
    JSON.stringify(copy.source),
    lastTask,
    twin.copyId,
  ])
  transaction.post('DELETE FROM copies WHERE copy_id = ?', [copy.copyId])
  return { ...twin, source: copy.source, lastTask, lastUsedAtMs: isUsed ? nowMs : twin.lastUsedAtMs }
}

function subject(copy: Copy, task: string | null, nowMs: number) {
  return { atMs: nowMs, node: copy.node, dataset: copy.dataset, copyId: copy.copyId, task }
}
