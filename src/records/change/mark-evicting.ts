import type { EvictionPlan } from '../../policy/plan-eviction.js'
import type { Victim } from '../../policy/take-by-share.js'
import type { EvictionRequest } from '../contract/record-requests.js'
import type { Decide } from '../contract/record-store.js'
import { decideOnNode } from '../select/decide-on-node.js'
import type { RecordWrite } from './record-write.js'
import { writeCopyEvent } from './write-event.js'

/** Plans inside the transaction, so every marked copy is idle at that moment. */
export async function beginEvicting(
  write: RecordWrite,
  { node, only, task, by }: EvictionRequest,
  decide: Decide<EvictionPlan>,
): Promise<EvictionPlan> {
  const plan = await decideOnNode(write.transaction, { node, only, nowMs: write.nowMs }, decide)
  markEvicting(write, plan.victims, { task, by })
  return plan
}

/**
 * Takes the victims of a plan made in this transaction out of use. From now on their files may be deleted. With `by`,
 * the history keeps what a return of the copy needs and its manifest lacks.
 */
export function markEvicting(
  write: RecordWrite,
  victims: readonly Victim[],
  { task, by }: Pick<EvictionRequest, 'task' | 'by'>,
): void {
  const { transaction } = write
  for (const { copy, reason } of victims) {
    const { version, chargedBytes, lastUsedAtMs, origin, source, lastTask, parties } = copy
    const deed = by === undefined ? {} : { by, origin, source, lastTask, parties }
    transaction.post('DELETE FROM leases WHERE copy_id = ?', [copy.copyId])
    transaction.post(`UPDATE copies SET state = 'evicting' WHERE copy_id = ?`, [copy.copyId])
    writeCopyEvent(write, copy, {
      kind: 'evicted',
      task,
      reason,
      detail: { version, chargedBytes, lastUsedAtMs, ...deed },
    })
  }
}
