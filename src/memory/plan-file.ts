import { DscError } from '../failure/dsc-error.js'
import { invalidContents, PLAN_FILE, readNamedFile, writeNamedFile } from './named-file.js'
import { type MemoryPlan, planSchema } from './plan/plan-format.js'

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
  const { value: plan } = await readNamedFile(path, PLAN_FILE, planSchema)
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
