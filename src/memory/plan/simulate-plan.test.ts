import assert from 'node:assert/strict'
import { test } from 'node:test'
import { uniform } from '../../testing/synthetic-networks.js'
import { buildProfile } from '../../testing/synthetic-profile.js'
import type { MemoryPlan, PlannedMove } from './plan-format.js'
import { planMemory } from './plan-memory.js'
import { simulatePlan } from './simulate-plan.js'

const MIB = 2 ** 20
const PROFILE = buildProfile('uniform', uniform(12, 64 * MIB), {
  name: 'simulated',
  bytes: 80 * 2 ** 30,
  flopsPerSecond: 60e12,
  bytesPerSecond: 2e12,
  copyLatencyUs: 10,
  copyRatio: 1,
})
const BUDGET = 8 * 64 * MIB

function planned(): MemoryPlan {
  const outcome = planMemory(PROFILE, { budgetBytes: BUDGET, profileHash: 'test' })
  return outcome.kind === 'planned' ? outcome.plan : assert.fail(JSON.stringify(outcome))
}

function broken(change: (move: PlannedMove) => Partial<PlannedMove>): MemoryPlan {
  const plan = planned()
  return { ...plan, moves: plan.moves.map((move, at) => (at === 0 ? { ...move, ...change(move) } : move)) }
}

for (const { name, plan, complaint } of [
  { name: 'nothing of a good plan', plan: planned(), complaint: undefined },
  {
    name: 'a tensor that is used before it comes back',
    plan: broken((move) => ({ inAt: move.useAt + 1 })),
    complaint: /is used but not on the device/,
  },
  {
    name: 'a tensor that stays too long',
    plan: broken((move) => ({ freeBy: move.inAt })),
    complaint: /bytes of/,
  },
  {
    name: 'a tensor that comes back in the forward, when there is no room',
    plan: broken((move) => ({ inAt: move.freeBy + 1, reloadOffset: null })),
    complaint: /bytes of/,
  },
  {
    name: 'a reference count that the step does not use up',
    plan: broken((move) => ({ refs: move.refs + 1 })),
    complaint: /has count 1, not 0/,
  },
  {
    name: 'a reference count that is too low',
    plan: broken((move) => ({ refs: move.refs - 1 })),
    complaint: /below 0/,
  },
  {
    name: 'a reload arena that is given back while something is in it',
    plan: { ...planned(), arenas: { ...planned().arenas, reload: earlyEnd(planned()) } },
    complaint: /still in the reload arena/,
  },
]) {
  test(`simulatePlan complains about ${name}`, () => {
    const { violations } = simulatePlan(PROFILE, plan, { capacityBytes: BUDGET })
    if (complaint === undefined) assert.deepEqual(violations, [])
    else assert.match(violations.join('\n'), complaint)
  })
}

test('simulatePlan counts stalls, not promises, when copies are slow', () => {
  const slow = simulatePlan(PROFILE, planned(), { capacityBytes: BUDGET, faults: { copySlowdown: () => 20 } })
  assert.deepEqual(slow.violations, [])
  assert.ok(slow.stallUs > 0 && Math.abs(slow.stepUs - slow.computeUs - slow.stallUs) < 1e-6)
})

test('simulatePlan gives up where the stall is longer than asked about, and says when', () => {
  const faults = { copySlowdown: () => 20 }
  const whole = simulatePlan(PROFILE, planned(), { capacityBytes: BUDGET, faults })
  const maxStallUs = whole.stallUs / 2
  const cut = simulatePlan(PROFILE, planned(), { capacityBytes: BUDGET, faults, maxStallUs })
  assert.match(cut.violations.join('\n'), /given up after a stall of [\d.]+ microseconds/)
  assert.ok(cut.stallUs > maxStallUs && cut.stepUs < whole.stepUs)
  const enough = { capacityBytes: BUDGET, faults, maxStallUs: whole.stallUs }
  assert.deepEqual(simulatePlan(PROFILE, planned(), enough), whole)
})

test('simulatePlan frees the memory of a copy, if eager, as soon as it is out and no sooner', () => {
  const curves = (plan: MemoryPlan, copySlowdown: number) =>
    [false, true].map((isEager) => {
      const options = { capacityBytes: BUDGET, faults: { copySlowdown: () => copySlowdown }, isEager }
      return simulatePlan(PROFILE, plan, options).bytesPerEvent
    }) as [readonly number[], readonly number[]]
  const late = { ...planned(), moves: planned().moves.map((move) => ({ ...move, freeBy: move.inAt - 1 })) }
  const [asPlanned, eager] = curves(late, 0.01)
  assert.ok(eager.every((bytes, event) => bytes <= asPlanned[event]!))
  assert.ok(Math.max(...eager) < Math.max(...asPlanned))
  const [waited, slow] = curves(planned(), 50)
  assert.deepEqual(slow, waited, 'a copy that ends only when it is waited for frees nothing before')
})

test('simulatePlan does a failed copy again', () => {
  const options = { capacityBytes: BUDGET }
  const fine = simulatePlan(PROFILE, planned(), options)
  const failing = simulatePlan(PROFILE, planned(), { ...options, faults: { copyFailures: () => 30 } })
  assert.deepEqual(failing.violations, [])
  assert.ok(failing.stepUs > fine.stepUs)
})

function earlyEnd(plan: MemoryPlan): MemoryPlan['arenas']['reload'] {
  const { reload } = plan.arenas
  return reload.mode === 'arena' ? { ...reload, to: reload.from + 1 } : assert.fail('the plan has no arena')
}
