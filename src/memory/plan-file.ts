import { writeFile } from 'node:fs/promises'
import { DscError } from '../failure/dsc-error.js'
import type { MemoryPlan } from './plan/memory-plan.js'
import { readJsonFile } from './profile-file.js'

/** A plan as it is stored: two spaces, keys in the planner's order, a newline at the end. Same plan, same bytes. */
export function formatPlanFile(plan: MemoryPlan): string {
  return `${JSON.stringify(plan, undefined, 2)}\n`
}

/** Writes a plan where the user asked for it. */
export async function writePlan(path: string, plan: MemoryPlan): Promise<void> {
  await writeFile(path, formatPlanFile(plan))
}

/** Reads a plan that `dsc memory plan` wrote; with `profileHash`, refuses one made from another profile. */
export async function readPlan(path: string, profileHash?: string): Promise<MemoryPlan> {
  const { value } = await readJsonFile(path, 'plan')
  const header = value as Partial<MemoryPlan> | null
  if (header?.kind !== 'dsc.mem.plan' || header.v !== 1) {
    throw new DscError('MEMORY_FILE_INVALID', `${path} is not a plan of version 1`, {
      hint: 'make one with `dsc memory plan profile.json --budget 24GiB`',
    })
  }
  const plan = value as MemoryPlan
  if (profileHash !== undefined && plan.profile !== profileHash) {
    throw new DscError(
      'MEMORY_FILE_INVALID',
      `${path} was planned from the profile ${plan.profile.slice(0, 12)}, not from ${profileHash.slice(0, 12)}`,
      { hint: 'name the profile it was planned from, or plan again' },
    )
  }
  return plan
}
