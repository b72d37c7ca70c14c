import { type Admission, type AdmissionInput, planAdmission } from '../../policy/plan-admission.js'
import type { Decide } from '../../records/contract/record-store.js'
import type { Cache } from '../cache.js'
import { finishDrops, giveKeptRoom, listDropped, measureRoom } from '../kept-copies.js'
import { expireDeadLeases } from '../leases/expire-leases.js'
import { explainRefusal } from './explain-refusal.js'
import { finishEvictions } from './finish-evictions.js'
import { hideGuarded } from './hide-guarded.js'

/** Rounds of evict-and-look-again. Each frees something or ends, so more are never needed in practice. */
const MAX_ROUNDS = 1000

/** A request for room on this node. */
interface RoomRequest<Other> extends Omit<AdmissionInput, 'policy' | 'disk' | 'copies' | 'unread'> {
  /** For messages. */
  readonly dataset: string
  /** Asks the record, which calls `decide` in a transaction; `Other`: there is no longer anything to admit. */
  readonly ask: (decide: Decide<Admission>) => Promise<Admission | Other>
}

type Admitted = Extract<Admission, { outcome: 'admit' }>

/**
 * Asks for room until it is admitted; the victims' bytes are off the disk when this resolves. Rejects with
 * QUOTA_EXCEEDED if no permitted eviction is enough; then it deleted nothing for this request.
 */
export async function settleAdmission<Other extends { readonly outcome: string }>(
  cache: Cache,
  { dataset, ask, ...asked }: RoomRequest<Other>,
): Promise<Admitted | Other> {
  const { policy, node } = cache
  let hasAskedSlurm = false
  const finished = new Set<string>()
  await expireDeadLeases(cache, { asksSlurm: false })
  for (let round = 0; round < MAX_ROUNDS; round++) {
    const before = listDropped(cache.root)
    const disk = await measureRoom(cache)
    const coming = [...before, ...listDropped(cache.root)].filter((name) => !finished.has(name))
    const answer = await ask((copies, unread) => {
      const admission = planAdmission({ ...asked, policy, disk, copies, unread })
      return coming.length > 0 && isAtACost(admission) ? { outcome: 'wait', evicting: [] } : admission
    })
    if (isAdmission(answer, 'wait')) {
      await finishDrops(cache.root)
      for (const name of coming) finished.add(name)
      await finishEvictions(cache, answer.evicting)
    } else if (isAdmission(answer, 'refuse')) {
      // Asking Slurm is slow, so ask only when its answer could change the refusal.
      if (!hasAskedSlurm && (await expireDeadLeases(cache, { asksSlurm: true })).length > 0) {
        hasAskedSlurm = true
        continue
      }
      const { outcome: _, ...refusal } = answer
      const leases = await cache.record.listLeases({ node })
      const { request } = asked
      const holders = hideGuarded(cache, refusal.holders)
      const known = { dataset, request, disk, node, policy, leases, nowMs: cache.nowMs() }
      throw explainRefusal({ ...refusal, ...known, holders })
    } else {
      if (isAdmission(answer, 'admit')) {
        const victims = answer.plan.victims.map(({ copy }) => copy)
        await finishEvictions(cache, victims)
        await giveKeptRoom(cache)
      }
      return answer as Admitted | Other
    }
  }
  throw new Error(`admission of ${dataset} did not settle in ${MAX_ROUNDS} rounds`)
}

/** Whether a disk with more room could spare somebody a copy, or the asker the refusal. */
function isAtACost(admission: Admission): boolean {
  return (
    admission.outcome === 'refuse' || (admission.outcome === 'admit' && admission.plan.victims.length > 0)
  )
}

function isAdmission<Outcome extends Admission['outcome']>(
  answer: { readonly outcome: string },
  outcome: Outcome,
): answer is Extract<Admission, { outcome: Outcome }> {
  return answer.outcome === outcome
}
