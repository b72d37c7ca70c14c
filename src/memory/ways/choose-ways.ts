import type { ComparedWays, Way } from '../memory-answer.js'
import type { PlanOutcome } from '../plan/plan-memory.js'
import { simulatePlan } from '../plan/simulate-plan.js'
import type { Block } from '../step/find-blocks.js'
import type { MemoryProfile } from '../step/profile.js'
import { recomputeBlocks, sumForwardUs } from '../step/recompute-blocks.js'
import { offloadAll } from './offload-all.js'
import { type WaysRequest, WaysSearch } from './search-ways.js'

/** The three ways to keep a tensor, compared under one budget. */
export interface Ways extends ComparedWays {
  readonly blocks: readonly Block[]
}

/**
 * Chooses for every block whether to recompute it, and plans which of the rest moves, so that the predicted step is
 * shortest under a budget; compares with the fixed recipes. Pure.
 */
export function chooseWays(profile: MemoryProfile, request: WaysRequest): Ways {
  const search = new WaysSearch(profile, request)
  const roomy = new WaysSearch(profile, { ...request, budgetBytes: Number.MAX_SAFE_INTEGER })
  const best = search.search()
  return {
    blocks: search.blocks,
    budgetBytes: request.budgetBytes,
    keepAll: describeWay(roomy.plan([]))!,
    recomputeAll: describeWay(roomy.plan(search.blocks.map((_, at) => at)))!,
    recomputeAllMoveInputs: runRecipe(profile, search.blocks, request.smallestBytes),
    moveOnly: describeWay(search.plan([])),
    best: best && describeWay({ kind: 'planned', plan: best }),
  }
}

/**
 * Plans one step under a byte budget, keeping, recomputing and moving: the mixture that `chooseWays` would choose. If
 * none fits, the least budget is that of all blocks recomputed, or of none, whichever is smaller. Pure.
 */
export function planWays(profile: MemoryProfile, request: WaysRequest): PlanOutcome {
  const search = new WaysSearch(profile, request)
  const best = search.search()
  if (best) return { kind: 'planned', plan: best }
  const kept = search.plan([])
  const again = search.plan(search.blocks.map((_, at) => at))
  const isLess =
    again.kind === 'infeasible' && kept.kind === 'infeasible' && again.leastBytes < kept.leastBytes
  return isLess ? again : kept
}

/**
 * Recomputes every block and keeps the remaining saved maps on the host: computation waits for each copy, as nothing is
 * planned.
 */
function runRecipe(profile: MemoryProfile, blocks: readonly Block[], smallestBytes: number | undefined): Way {
  const again = recomputeBlocks(profile, blocks)
  const recipe = offloadAll(again, { isBlocking: true, smallestBytes })
  const run = simulatePlan(again, recipe, { capacityBytes: Number.MAX_SAFE_INTEGER, isEager: true })
  return {
    recomputed: blocks.map(({ name }) => name),
    stepMs: run.stepUs / 1000,
    recomputeMs: blocks.reduce((sum, block) => sum + sumForwardUs(profile, block), 0) / 1000,
    stallMs: run.stallUs / 1000,
    peakBytes: run.peakBytes,
    moves: recipe.moves.length,
    movedBytes: run.movedBytes,
  }
}

function describeWay(outcome: PlanOutcome): Way | undefined {
  if (outcome.kind === 'infeasible') return undefined
  const { predicted, moves, recompute } = outcome.plan
  return {
    recomputed: recompute.map(({ name }) => name),
    stepMs: predicted.stepMs,
    recomputeMs: predicted.recomputeMs,
    stallMs: predicted.stallMs,
    peakBytes: predicted.peakBytes,
    moves: moves.length,
    movedBytes: predicted.movedBytes,
  }
}
