import type { CopyUse } from '../../model/copy.js'
import type { Admission } from '../../policy/plan-admission.js'
import type { ChargeRequest } from '../contract/record-requests.js'
import type { RecordStore } from '../contract/record-store.js'
import { selectCopyUses } from '../select/select-copy-uses.js'
import { markEvicting } from './mark-evicting.js'
import type { RecordWrite } from './record-write.js'

/** See `RecordStore.chargeCopy`. */
export async function chargeReadyCopy(
  write: RecordWrite,
  { copyId, chargedBytes, chargedInodes, task }: ChargeRequest,
  decide: (copies: readonly CopyUse[]) => Admission,
): ReturnType<RecordStore['chargeCopy']> {
  const neighbours = await selectCopyUses(write.transaction, { sameNodeAs: copyId }, write.nowMs)
  if (!neighbours.some((copy) => copy.copyId === copyId && copy.state === 'ready')) return { outcome: 'gone' }
  const admission = decide(neighbours)
  if (admission.outcome !== 'admit') return admission
  markEvicting(write, admission.plan.victims, { task })
  write.transaction.post(
    'UPDATE copies SET charged_bytes = ?, charged_inodes = ?, written_bytes = ? WHERE copy_id = ?',
    [chargedBytes, chargedInodes, chargedBytes, copyId],
  )
  return admission
}
