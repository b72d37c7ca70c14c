import type { Copy } from '../../model/copy.js'
import { isLeaseLive, type Lease } from '../../model/lease.js'
import { newCopy } from '../../model/new-copy.js'
import { createUniqueId } from '../../platform/unique-id.js'
import { addLease, grantLease, leaseReadyCopy } from '../change/grant-lease.js'
import { insertCopy } from '../change/insert-copy.js'
import { markEvicting } from '../change/mark-evicting.js'
import type { RecordWrite } from '../change/record-write.js'
import { writeCopyEvent } from '../change/write-event.js'
import type { Joined, JoinRequest } from '../contract/record-requests.js'
import { stripeValue, toCopy, toLease } from '../database/row-mapping.js'
import type { SqlTransaction } from '../database/sql-database.js'

/** See `RecordStore.joinOrReserve`. */
export async function joinOrReserve(write: RecordWrite, request: JoinRequest): Promise<Joined> {
  const { transaction, nowMs } = write
  const { lease } = request
  const [ready, found] = await Promise.all([
    request.isRefresh ? undefined : leaseReadyCopy(write, request),
    findStaging(transaction, request),
  ])
  if (ready) return { outcome: 'ready', ...ready }
  if (found?.stageLease && isLeaseLive(found.stageLease, nowMs)) {
    const leaseId = await grantLease(write, { copy: found.copy, purpose: 'use', lease })
    return { outcome: 'wait', copy: found.copy, leaseId, stageLease: found.stageLease }
  }
  // Dead stagers have no lease any more. A stager with an expired lease may still be writing to its directory, so no
  // other may resume it.
  if (found?.stageLease) {
    markEvicting(write, [{ copy: found.copy, reason: 'its stager fell silent' }], { task: lease.task })
    return beginStaging(write, request, undefined)
  }
  return beginStaging(write, request, found?.copy)
}

/** Makes the caller the stager of an abandoned staging, else of a new copy. */
async function beginStaging(
  write: RecordWrite,
  request: JoinRequest,
  left: Copy | undefined,
): Promise<Joined> {
  const { lease } = request
  const isResumed = left !== undefined
  const copy = left ?? insertReserved(write, request)
  const leaseId = left
    ? await grantLease(write, { copy, purpose: 'use', lease })
    : addLease(write, { copy, purpose: 'use', lease })
  const stageLeaseId = addLease(write, { copy, purpose: 'stage', lease: request.stager })
  writeCopyEvent(write, copy, {
    kind: isResumed ? 'staging-taken-over' : 'staging-started',
    task: lease.task,
    reason: `${lease.task} ${isResumed ? 'goes on with a staging that was left' : 'stages it'}`,
    detail: { source: request.source.source, stageLeaseId },
  })
  return { outcome: 'stage', copy, leaseId, stageLeaseId, isResumed }
}

async function findStaging(
  transaction: SqlTransaction,
  request: JoinRequest,
): Promise<{ readonly copy: Copy; readonly stageLease: Lease | undefined } | undefined> {
  const place = [request.dataset, request.node, stripeValue(request.stripe) ?? '']
  const isStaging = `dataset = ? AND copies.node = ? AND coalesce(stripe, '') = ? AND state IN ('reserved', 'staging')`
  const [row, lease] = await Promise.all([
    transaction.get(`SELECT * FROM copies WHERE ${isStaging}`, place),
    transaction.get(
      `SELECT leases.* FROM leases JOIN copies ON copies.copy_id = leases.copy_id
        WHERE ${isStaging} AND purpose = 'stage'`,
      place,
    ),
  ])
  return row && { copy: toCopy(row), stageLease: lease && toLease(lease) }
}

function insertReserved({ transaction, nowMs }: RecordWrite, request: JoinRequest): Copy {
  const { dataset, node, origin, source, lease, stripe } = request
  const copyId = createUniqueId()
  const directory = request.directoryOf(copyId)
  const known = { copyId, dataset, node, origin, source, directory, lastTask: lease.task }
  const copy = newCopy({ ...known, stripe }, nowMs)
  insertCopy(transaction, copy)
  return copy
}
