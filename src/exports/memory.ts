/**
 * `dsc/memory`: plans which tensors of a training step leave the device and when, and runs plans on a simulated device.
 * `dsc memory profile` makes the profiles; the Python executor reads the plans.
 */

export type { Way } from '../memory/memory-answer.js'
export type { MemoryPlan, PlannedMove, Prediction } from '../memory/plan/plan-format.js'
export { type PlanOutcome, type PlanRequest, planMemory } from '../memory/plan/plan-memory.js'
export { type DeviceFaults, type Simulation, simulatePlan } from '../memory/plan/simulate-plan.js'
export { readPlan, writePlan } from '../memory/plan-file.js'
export { readProfile } from '../memory/profile-file.js'
export type { MemoryProfile, ProfiledLayer, ProfiledTensor } from '../memory/step/profile.js'
export { chooseWays, planWays, type Ways } from '../memory/ways/choose-ways.js'
export type { WaysRequest } from '../memory/ways/search-ways.js'
