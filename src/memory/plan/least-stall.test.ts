import assert from 'node:assert/strict'
import { test } from 'node:test'
import { buildProfile, type SyntheticNode } from '../../testing/synthetic-profile.js'
import { planMemory } from './plan-memory.js'

const DEVICE = {
  name: 'simulated',
  bytes: 2 ** 30,
  flopsPerSecond: 1e12,
  bytesPerSecond: 1e18,
  copyLatencyUs: 0,
}
const MIB = 2 ** 20

/** Equal layers around one whose output is as large as `middleMib`, so that nothing else fits beside it. */
function withWideMiddle(middleMib: number): SyntheticNode[] {
  return Array.from({ length: 9 }, (_, at) => ({
    name: `layer${at}`,
    inputs: at === 0 ? [] : [at - 1],
    outBytes: (at === 4 ? middleMib : 4) * MIB,
    paramBytes: 0,
    flops: 1e9,
    savesInput: 'param' as const,
    savesOutput: false,
  }))
}

function leastStallMs(nodes: readonly SyntheticNode[], spareBytes: number): { bound: number; stall: number } {
  const profile = buildProfile('wide middle', nodes, { ...DEVICE, copyRatio: 2 })
  const request = { profileHash: 'test', smallestBytes: 0 }
  const least = planMemory(profile, { ...request, budgetBytes: 0 })
  assert.equal(least.kind, 'infeasible')
  const leastBytes = least.kind === 'infeasible' ? least.leastBytes : 0
  const outcome = planMemory(profile, { ...request, budgetBytes: leastBytes + spareBytes })
  assert.equal(outcome.kind, 'planned')
  const { predicted } = outcome.kind === 'planned' ? outcome.plan : assert.fail()
  return { bound: predicted.leastStallMs, stall: predicted.stallMs }
}

test('a wait before one event is no longer than a plan’s, and with room for everything nothing waits', () => {
  const tight = leastStallMs(withWideMiddle(16), 0)
  assert.ok(tight.bound > 0 && tight.bound <= tight.stall, JSON.stringify(tight))
  assert.equal(leastStallMs(withWideMiddle(16), 64 * MIB).bound, 0)
})

test('room for a part of a storage is room for nothing', () => {
  const none = leastStallMs(withWideMiddle(16), 0)
  const part = leastStallMs(withWideMiddle(16), 2 * MIB)
  assert.equal(part.bound, none.bound)
  assert.ok(part.bound <= part.stall && leastStallMs(withWideMiddle(16), 4 * MIB).bound < none.bound)
})

test('waits around two narrow places add up', () => {
  const once = leastStallMs(withWideMiddle(16), 0).bound
  const rest = withWideMiddle(16).map((node, at) => ({
    ...node,
    name: `again${at}`,
    inputs: [at === 0 ? 8 : at + 8],
  }))
  const twice = leastStallMs([...withWideMiddle(16), ...rest], 0).bound
  assert.ok(twice > 1.2 * once, `${twice} against ${once}`)
})
