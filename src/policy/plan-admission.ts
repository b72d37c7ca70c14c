import type { CopyUse } from '../model/copy.js'
import { sumUpCopies } from './copy-sums.js'
import {
  type EvictionInput,
  type EvictionPlan,
  isEvictable,
  measureLoad,
  planEviction,
} from './plan-eviction.js'
import { measureShares, type ShareStanding } from './shares.js'

/**
 * | outcome   | meaning                                                                    |
 * |-----------|----------------------------------------------------------------------------|
 * | `admit`   | the request fits once `plan.victims` (perhaps none) are gone               |
 * | `wait`    | deletions under way hold space: finish them, then decide again             |
 * | `refuse`  | not even every permitted eviction is enough; nothing is deleted            |
 */
export type Admission =
  | { readonly outcome: 'admit'; readonly plan: EvictionPlan }
  | { readonly outcome: 'wait'; readonly evicting: readonly CopyUse[] }
  | {
      readonly outcome: 'refuse'
      readonly plan: EvictionPlan
      readonly holders: readonly CopyUse[]
      /** The state of the node's shares; empty without shares. */
      readonly shares: readonly ShareStanding[]
    }

/** The inputs of admission; `disk` is measured before the transaction that applies the outcome. */
export interface AdmissionInput extends Omit<EvictionInput, 'accept'> {
  readonly requestCopyId: string
}

/**
 * Decides whether a listed source may be staged now. Waits during any eviction: its bytes are still on disk, and a
 * reservation made against them could exceed the space the disk really has.
 */
export function planAdmission(input: AdmissionInput): Admission {
  const evicting = input.copies.filter((copy) => copy.state === 'evicting')
  if (evicting.length > 0) return { outcome: 'wait', evicting }
  const plan = planEviction(input)
  if (plan.shortfalls.length === 0) return { outcome: 'admit', plan }
  const holders = input.copies.filter(
    (copy) => copy.state !== 'reserved' && copy.copyId !== input.requestCopyId && !isEvictable(copy),
  )
  const others = input.copies.filter(({ copyId }) => copyId !== input.requestCopyId)
  const sums = sumUpCopies(others)
  const shares = measureShares(input.policy, input.disk, { sums, load: measureLoad(sums) })
  return { outcome: 'refuse', plan, holders, shares }
}
