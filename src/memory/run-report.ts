import { z } from 'zod'
import { count } from '../answers/fields.js'
import type { RunCheck } from './memory-answer.js'
import { RUN_FILE, readNamedFile } from './named-file.js'
import type { MemoryPlan } from './plan/plan-format.js'

const reportSchema = z.object({
  v: z.literal(1),
  kind: z.literal('dsc.mem.run'),
  plan: z.string(),
  steps: count,
  plannedSteps: count,
  planMisses: count,
  peakBytes: z.number().nonnegative(),
  /** Median milliseconds per step; null where the run did not time steps. */
  stepMs: z.number().nonnegative().nullable(),
  stallMs: z.number().nonnegative(),
  movedBytes: z.number().nonnegative(),
  hostBytes: z.number().nonnegative(),
  leftReferences: count,
  device: z.string(),
  lateness: z.array(z.object({ storage: z.number().int(), lateUs: z.number().nonnegative() })),
})

/** An executor's report of a run (`offload(plan).report()` in Python). */
type RunReport = z.infer<typeof reportSchema>

/** Reads a run report written by an executor. */
export async function readRunReport(path: string): Promise<RunReport> {
  return (await readNamedFile(path, RUN_FILE, reportSchema)).value
}

/** Compares a run with its plan. `tolerance` is the permitted relative error of the peak (0–1). */
export function checkRun(plan: MemoryPlan, run: RunReport, tolerance: number): RunCheck[] {
  const { predicted, budgetBytes } = plan
  const error = Math.abs(run.peakBytes - predicted.peakBytes) / predicted.peakBytes
  const wasPlanned = run.plannedSteps > 0
  const moved = wasPlanned ? run.movedBytes / run.plannedSteps : 0
  return [
    compare('peak bytes', predicted.peakBytes, run.peakBytes, error <= tolerance),
    compare('peak within budget', budgetBytes, run.peakBytes, run.peakBytes <= budgetBytes * (1 + tolerance)),
    compare(
      'moved bytes per planned step',
      predicted.movedBytes,
      moved,
      wasPlanned && moved === predicted.movedBytes,
    ),
    compare('references left at the end of a step', 0, run.leftReferences),
    compare('steps the plan did not match', 0, run.planMisses),
  ]
}

function compare(
  name: string,
  predicted: number,
  measured: number,
  isFine = measured === predicted,
): RunCheck {
  return { name, predicted, measured, isFine }
}
