import { z } from 'zod'
import { DscError } from '../failure/dsc-error.js'
import { invalidContents, PLAN_FILE, readJsonFile, writeNamedFile } from './named-file.js'
import { type MemoryPlan, PLAN_VERSION } from './plan/plan-format.js'

const count = z.number().int().nonnegative()
const bytes = count
const number = z.number()
const kind = z.enum(['feature', 'feature_grad', 'param', 'param_grad', 'opt_state', 'buffer', 'workspace'])

const moveSchema = z.object({
  storage: count,
  kind,
  name: z.string().nullable(),
  bytes,
  outAfter: z.number().int().min(-1),
  freeBy: count,
  inAt: count,
  useAt: count,
  until: count,
  hostOffset: bytes,
  reloadOffset: bytes.nullable(),
  outUs: number,
  inUs: number,
  slackUs: number,
  refs: count,
  packs: z.array(count),
  unpacks: z.array(count),
  ticks: z.object({ out: count, free: count, in: count }).nullable(),
})

const reloadSchema = z.discriminatedUnion('mode', [
  z.object({ mode: z.literal('arena'), bytes, liveBytes: bytes, from: count, to: count }),
  z.object({ mode: z.literal('slots'), bytes, liveBytes: bytes }),
])

const planSchema = z.object({
  v: z.literal(PLAN_VERSION),
  kind: z.literal('dsc.mem.plan'),
  profile: z.string(),
  signature: z.string(),
  model: z.string(),
  budgetBytes: bytes,
  options: z.object({
    move: z.array(z.enum(['param', 'param_grad', 'opt_state'])),
    smallestBytes: bytes,
    reuse: z.boolean(),
  }),
  predicted: z.object({
    peakBytes: bytes,
    peakAt: z.string(),
    unplannedPeakBytes: bytes,
    stepMs: number,
    baseMs: number,
    recomputeMs: number,
    stallMs: number,
    leastStallMs: number,
    hostBytes: bytes,
    movedBytes: bytes,
  }),
  recompute: z.array(
    z.object({ name: z.string(), call: count, inputs: count, buffers: z.array(z.string()) }),
  ),
  moves: z.array(moveSchema),
  keep: z.array(z.object({ storage: count, bytes, why: z.string() })),
  arenas: z.object({ host: z.object({ bytes, liveBytes: bytes }), reload: reloadSchema }),
  reuse: z.array(z.object({ pack: count, layer: count, storage: count, bytes })),
  refs: z.array(z.object({ storage: count, refs: count })),
  packSignatures: z.array(z.string()),
  layerNames: z.array(z.string()),
  packLayers: z.array(count),
  unpackCount: count,
})

/** The stored form of a plan: two spaces, keys in the planner's order, a newline at the end. Same plan, same bytes. */
export function formatPlanFile(plan: MemoryPlan): string {
  return `${JSON.stringify(plan, undefined, 2)}\n`
}

/** Writes a plan to the path that the user chose. */
export async function writePlan(path: string, plan: MemoryPlan): Promise<void> {
  await writeNamedFile(path, 'plan', formatPlanFile(plan))
}

/** Reads a plan written by `dsc memory plan`; with `profileHash`, refuses one made from another profile. */
export async function readPlan(path: string, profileHash?: string): Promise<MemoryPlan> {
  const { value } = await readJsonFile(path, PLAN_FILE)
  const parsed = planSchema.safeParse(value)
  if (!parsed.success) {
    const issue = parsed.error.issues[0]
    throw invalidContents(path, PLAN_FILE, `${issue?.path.join('.') || 'top level'}: ${issue?.message}`)
  }
  const plan: MemoryPlan = parsed.data
  checkEvents(path, plan)
  if (profileHash !== undefined && plan.profile !== profileHash) {
    throw new DscError(
      'MEMORY_FILE_INVALID',
      `${path} was planned from the profile ${plan.profile.slice(0, 12)}, not from ${profileHash.slice(0, 12)}`,
      { hint: 'name the profile it was planned from, or plan again' },
    )
  }
  return plan
}

/** Plans are meant to be read and may have been edited: every move must be within the step, in its own order. */
function checkEvents(path: string, plan: MemoryPlan): void {
  const end = 3 * plan.layerNames.length
  plan.moves.forEach(({ outAfter, freeBy, inAt, useAt }, at) => {
    const isInOrder = outAfter < freeBy && freeBy <= inAt && inAt <= useAt && useAt <= end
    if (!isInOrder) {
      const found = `outAfter ${outAfter}, freeBy ${freeBy}, inAt ${inAt}, useAt ${useAt}`
      throw invalidContents(
        path,
        PLAN_FILE,
        `moves.${at}: expected these in order and up to ${end}, ${found}`,
      )
    }
  })
}
