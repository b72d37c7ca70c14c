import { z } from 'zod'
import { invalidContents, RUN_FILE, readJsonFile } from './named-file.js'
import type { MemoryPlan } from './plan/plan-format.js'

const reportSchema = z.object({
  v: z.literal(1),
  kind: z.literal('dsc.mem.run'),
  plan: z.string(),
  steps: z.number().int().nonnegative(),
  plannedSteps: z.number().int().nonnegative(),
  planMisses: z.number().int().nonnegative(),
  peakBytes: z.number().nonnegative(),
  /** Median milliseconds per step; null where the run did not time steps. */
  stepMs: z.number().nonnegative().nullable(),
  stallMs: z.number().nonnegative(),
  movedBytes: z.number().nonnegative(),
  hostBytes: z.number().nonnegative(),
  leftReferences: z.number().int().nonnegative(),
  device: z.string(),
  lateness: z.array(z.object({ storage: z.number().int(), lateUs: z.number().nonnegative() })),
})

/** An executor's report of a run (`offload(plan).report()` in Python). */
type RunReport = z.infer<typeof reportSchema>

/** One comparison of prediction and run. */
interface Check {
  readonly name: string
  readonly predicted: number
  readonly measured: number
  readonly isFine: boolean
}

/** Reads a run report written by an executor. */
export async function readRunReport(path: string): Promise<RunReport> {
  const { value } = await readJsonFile(path, RUN_FILE)
  const parsed = reportSchema.safeParse(value)
  if (parsed.success) return parsed.data
  const issue = parsed.error.issues[0]
  throw invalidContents(path, RUN_FILE, `${issue?.path.join('.') || 'top level'}: ${issue?.message}`)
}

/** Compares a run with its plan. `tolerance` is the permitted relative error of the peak (0–1). */
export function checkRun(plan: MemoryPlan, run: RunReport, tolerance: number): Check[] {
  const { predicted } = plan
  const error = Math.abs(run.peakBytes - predicted.peakBytes) / predicted.peakBytes
  const wasPlanned = run.plannedSteps > 0
  return [
    {
      name: 'peak bytes',
      predicted: predicted.peakBytes,
      measured: run.peakBytes,
      isFine: error <= tolerance,
    },
    {
      name: 'peak within budget',
      predicted: plan.budgetBytes,
      measured: run.peakBytes,
      isFine: run.peakBytes <= plan.budgetBytes * (1 + tolerance),
    },
    {
      name: 'moved bytes per planned step',
      predicted: predicted.movedBytes,
      measured: wasPlanned ? run.movedBytes / run.plannedSteps : 0,
      isFine: wasPlanned && run.movedBytes / run.plannedSteps === predicted.movedBytes,
    },
    {
      name: 'references left at the end of a step',
      predicted: 0,
      measured: run.leftReferences,
      isFine: run.leftReferences === 0,
    },
    {
      name: 'steps the plan did not match',
      predicted: 0,
      measured: run.planMisses,
      isFine: run.planMisses === 0,
    },
  ]
}
