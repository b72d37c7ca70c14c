import type { BudgetPoint } from '../memory-answer.js'
import type { MemoryPlan } from '../plan/plan-format.js'
import { planMemory } from '../plan/plan-memory.js'
import type { MemoryProfile } from '../step/profile.js'
import { planWays } from '../ways/choose-ways.js'

/** Number of points on a curve, from the smallest requested budget to the peak without a plan. */
const POINTS = 8
/** How far below and above the budget to look, as a share of it, if that is less than 1 GiB. */
const SMALL_SHARE = 0.1

/**
 * The predicted step under budgets around that of `plan`: 1 GiB (or a tenth) less and more, and up to its full peak.
 */
export function traceBudgets(profile: MemoryProfile, plan: MemoryPlan): BudgetPoint[] {
  const { budgetBytes, predicted } = plan
  const apart = Math.min(2 ** 30, Math.ceil(SMALL_SHARE * budgetBytes))
  const top = Math.max(predicted.unplannedPeakBytes, budgetBytes)
  const low = Math.floor(budgetBytes / 2)
  const spread = Array.from({ length: POINTS }, (_, at) =>
    Math.floor(low + ((top - low) * at) / (POINTS - 1)),
  )
  const budgets = [...new Set([...spread, budgetBytes - apart, budgetBytes, budgetBytes + apart])]
  return budgets
    .sort((a, b) => a - b)
    .map((bytes) => ({ budgetBytes: bytes, stepMs: predictStep(profile, plan, bytes) }))
}

function predictStep(profile: MemoryProfile, plan: MemoryPlan, budgetBytes: number): number | undefined {
  if (budgetBytes === plan.budgetBytes) return plan.predicted.stepMs
  const { move, smallestBytes, reuse } = plan.options
  const request = { budgetBytes, profileHash: plan.profile, extras: move, smallestBytes, canReuse: reuse }
  // A plan that recomputes nothing may come from planning without it: more memory would not make it recompute.
  const outcome = plan.recompute.length > 0 ? planWays(profile, request) : planMemory(profile, request)
  if (outcome.kind === 'infeasible' || outcome.plan.predicted.peakBytes > budgetBytes) return undefined
  return outcome.plan.predicted.stepMs
}
