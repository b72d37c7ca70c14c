import type { NamedTotals, PlanSums, PlanTotals } from '../memory-answer.js'
import type { MemoryPlan } from '../plan/plan-format.js'
import { findLifetimes } from '../step/lifetimes.js'
import type { MemoryProfile } from '../step/profile.js'
import { profileOfPlan } from '../step/recompute-blocks.js'
import { layOutTimeline } from '../step/timeline.js'

/** Sums up what the plan does with the saved feature maps. */
export function sumPlan(recorded: MemoryProfile, plan: MemoryPlan): PlanSums {
  const own = listSaved(recorded)
  const again = new Map(listSaved(profileOfPlan(recorded, plan)).map(({ storage }) => [storage, true]))
  const moved = new Set(plan.moves.map(({ storage }) => storage))
  const lineOf = new Map(recorded.tensors.map(({ storage, line }) => [storage, line]))
  const rows = own.map(({ storage, bytes, layer }) => ({
    module: moduleOf(recorded.layers.find(({ i }) => i === layer)?.name ?? ''),
    line: lineOf.get(storage),
    keptBytes: again.has(storage) && !moved.has(storage) ? bytes : 0,
    recomputedBytes: again.has(storage) || moved.has(storage) ? 0 : bytes,
    movedBytes: moved.has(storage) ? bytes : 0,
  }))
  return {
    totals: sum(rows),
    modules: sumBy(rows, ({ module }) => module),
    lines: sumBy(rows, ({ line }) => line),
  }
}

function sumBy<Row extends PlanTotals>(
  rows: readonly Row[],
  nameOf: (row: Row) => string | undefined,
): NamedTotals[] {
  const size = (one: PlanTotals) => one.keptBytes + one.recomputedBytes + one.movedBytes
  return [...Map.groupBy(rows, nameOf)]
    .flatMap(([name, group]) => (name === undefined ? [] : [{ name, ...sum(group) }]))
    .sort((a, b) => size(b) - size(a))
}

function listSaved(profile: MemoryProfile): { storage: number; bytes: number; layer: number }[] {
  const timeline = layOutTimeline(profile)
  return findLifetimes(profile, timeline, { canReuse: false }).flatMap(
    ({ kind, storage, bytes, uses, born }) => {
      const isSaved = kind === 'feature' && uses.some((event) => event >= timeline.forwardCount)
      return isSaved ? [{ storage, bytes, layer: timeline.events[born]!.layer }] : []
    },
  )
}

/** `h.3.mlp.fc1` belongs to `h.3`: a part of the model ends at its number, else at the first word. */
function moduleOf(layer: string): string {
  const words = layer.replace(/^(after|before) /, '').split('.')
  const number = words.findIndex((word) => /^\d+$/.test(word))
  return words.slice(0, number >= 0 ? number + 1 : 1).join('.')
}

function sum(rows: readonly PlanTotals[]): PlanTotals {
  return rows.reduce(
    (all, one) => ({
      keptBytes: all.keptBytes + one.keptBytes,
      recomputedBytes: all.recomputedBytes + one.recomputedBytes,
      movedBytes: all.movedBytes + one.movedBytes,
    }),
    { keptBytes: 0, recomputedBytes: 0, movedBytes: 0 },
  )
}
