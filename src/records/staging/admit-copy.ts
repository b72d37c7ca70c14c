import type { Copy } from '../../model/copy.js'
import type { Admission } from '../../policy/plan-admission.js'
import { grantLease } from '../change/grant-lease.js'
import { markEvicting } from '../change/mark-evicting.js'
import type { RecordWrite } from '../change/record-write.js'
import type { AdmitRequest } from '../contract/record-requests.js'
import type { Decide, RecordStore } from '../contract/record-store.js'
import { toCopy } from '../database/row-mapping.js'
import { decideOnNode } from '../select/decide-on-node.js'
import { selectLeases } from '../select/select-leases.js'
import { selectStaged } from './select-staged.js'

/** See `RecordStore.admit`. */
export async function admitCopy(
  write: RecordWrite,
  request: AdmitRequest,
  decide: Decide<Admission>,
): ReturnType<RecordStore['admit']> {
  const { transaction, nowMs } = write
  const [copy, twin] = await Promise.all([
    selectStaged(transaction, request),
    transaction.get(
      `SELECT twin.* FROM copies JOIN copies twin ON twin.dataset = copies.dataset AND twin.node = copies.node
        WHERE copies.copy_id = ? AND twin.version = ? AND twin.state = 'ready'
          AND coalesce(twin.stripe, '') IN ('', coalesce(copies.stripe, ''))`,
      [request.copyId, request.version],
    ),
  ])
  if (!copy) return { outcome: 'lost' }
  if (twin) return { outcome: 'same-version', copy: await joinTwin(write, copy, toCopy(twin)) }
  // Not before: a refresh that finds nothing new reads none of the node's 100,000 copies.
  const admission = await decideOnNode(transaction, { node: copy.node, nowMs }, decide)
  if (admission.outcome !== 'admit') return admission
  markEvicting(write, admission.plan.victims, { task: copy.lastTask })
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

/** The source has not changed: moves the new copy's leases to the ready one. */
async function joinTwin(write: RecordWrite, copy: Copy, twin: Copy): Promise<Copy> {
  const { transaction, nowMs } = write
  const uses = await selectLeases(transaction, { copyId: copy.copyId })
  for (const use of uses) {
    if (use.purpose !== 'stage') await grantLease(write, { copy: twin, purpose: use.purpose, lease: use })
  }
  // The grants leave whichever task the clock, perhaps set back, puts last; so set it here.
  const isUsed = uses.some(({ purpose }) => purpose === 'use')
  const lastTask = isUsed ? copy.lastTask : twin.lastTask
  const parties = (isUsed ? copy.parties : undefined) ?? twin.parties
  transaction.post('UPDATE copies SET source = ?, last_task = ?, parties = ? WHERE copy_id = ?', [
    JSON.stringify(copy.source),
    lastTask,
    parties ? JSON.stringify(parties) : null,
    twin.copyId,
  ])
  transaction.post('DELETE FROM copies WHERE copy_id = ?', [copy.copyId])
  const lastUsedAtMs = isUsed ? nowMs : twin.lastUsedAtMs
  return { ...twin, source: copy.source, lastTask, lastUsedAtMs, ...(parties && { parties }) }
}
