import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import fc from 'fast-check'
import { sumPersistentBytes } from '../../testing/persistent-bytes.js'
import { gpt, resnet50, unet, uniform } from '../../testing/synthetic-networks.js'
import { buildProfile, SYNTHETIC_DEVICE, type SyntheticNode } from '../../testing/synthetic-profile.js'
import { formatPlanFile } from '../plan-file.js'
import { readProfile } from '../profile-file.js'
import type { MemoryProfile } from '../step/profile.js'
import type { MemoryPlan } from './plan-format.js'
import { estimatePlan, type PlanRequest, planMemory } from './plan-memory.js'
import { simulatePlan } from './simulate-plan.js'

const NETWORKS: Readonly<Record<string, readonly SyntheticNode[]>> = {
  'ResNet-50': resnet50(64),
  GPT: gpt({ batch: 8, context: 1024, width: 1024, blocks: 12, vocabulary: 50257 }),
  'U-Net': unet(8, 256),
}

function plan(profile: MemoryProfile, request: Partial<PlanRequest>): MemoryPlan {
  const outcome = planMemory(profile, { budgetBytes: 0, profileHash: 'test', ...request })
  assert.equal(outcome.kind, 'planned', JSON.stringify(outcome))
  return outcome.kind === 'planned' ? outcome.plan : assert.fail()
}

/** A budget that leaves `share` of the activations' peak, besides parameters, gradients and optimizer state. */
function budgetOf(profile: MemoryProfile, share: number): number {
  const fixed = sumPersistentBytes(profile)
  const peak = plan(profile, { budgetBytes: Number.MAX_SAFE_INTEGER }).predicted.unplannedPeakBytes
  return Math.floor(fixed + share * (peak - fixed))
}

for (const [name, nodes] of Object.entries(NETWORKS)) {
  for (const copyRatio of [0.5, 1, 2]) {
    const profile = buildProfile(name, nodes, { ...SYNTHETIC_DEVICE, copyRatio })
    test(`plans of ${name} keep every promise at 90 to 20 % of its activations, copies ${copyRatio}× the forward`, () => {
      for (const share of [0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2]) {
        const budgetBytes = budgetOf(profile, share)
        const made = plan(profile, { budgetBytes })
        const run = simulatePlan(profile, made, { capacityBytes: budgetBytes })
        assert.deepEqual(run.violations, [], `${share}`)
        assert.ok(run.peakBytes <= budgetBytes, `${share}: ${run.peakBytes} of ${budgetBytes}`)
        assert.equal(
          Math.round(run.stallUs) / 1000,
          made.predicted.stallMs,
          'the plan itself does what it predicts',
        )
        const { host, reload } = made.arenas
        assert.ok(
          host.bytes <= 1.1 * host.liveBytes,
          `${share}: host arena ${host.bytes} of ${host.liveBytes}`,
        )
        assert.ok(reload.bytes <= 1.1 * reload.liveBytes, `${share}: reload ${reload.bytes}`)
        const { stallMs, leastStallMs, baseMs } = made.predicted
        assert.ok(leastStallMs <= stallMs + 0.001, `${share}: ${stallMs} ms beat the bound ${leastStallMs}`)
        if (share >= 0.3)
          assert.ok(stallMs - leastStallMs <= 0.01 * baseMs, `${share}: ${stallMs} ms, bound ${leastStallMs}`)
        if (share === 0.5 && copyRatio <= 1)
          assert.ok(made.predicted.stallMs <= 0.02 * made.predicted.baseMs, `stall ${made.predicted.stallMs}`)
      }
    })
  }
}

test('planMemory declines when the step fits the budget: no moves, no host memory', () => {
  const profile = buildProfile('U-Net', unet(2, 64), { ...SYNTHETIC_DEVICE, copyRatio: 1 })
  const peak = plan(profile, { budgetBytes: Number.MAX_SAFE_INTEGER }).predicted.unplannedPeakBytes
  const made = plan(profile, { budgetBytes: peak })
  assert.deepEqual([made.moves.length, made.predicted.movedBytes, made.arenas.host.bytes], [0, 0, 0])
  const tight = plan(profile, { budgetBytes: peak - 1, smallestBytes: 0 })
  assert.ok(tight.moves.length > 0)
})

test('planMemory names the least feasible budget: it is feasible, one byte less is not', () => {
  const profile = buildProfile('ResNet-50', resnet50(8), { ...SYNTHETIC_DEVICE, copyRatio: 1 })
  const outcome = planMemory(profile, { budgetBytes: 1, profileHash: 'test' })
  assert.equal(outcome.kind, 'infeasible')
  const leastBytes = outcome.kind === 'infeasible' ? outcome.leastBytes : 0
  const made = plan(profile, { budgetBytes: leastBytes })
  assert.deepEqual(simulatePlan(profile, made, { capacityBytes: leastBytes }).violations, [])
  assert.equal(planMemory(profile, { budgetBytes: leastBytes - 1, profileHash: 'test' }).kind, 'infeasible')
  assert.ok(estimatePlan(profile, { budgetBytes: leastBytes, profileHash: 'test' }), 'an estimate agrees')
  assert.equal(estimatePlan(profile, { budgetBytes: leastBytes - 1, profileHash: 'test' }), undefined)
})

test('planMemory counts what smallestBytes leaves where it is idle, and the least budget without it', () => {
  const MIB = 2 ** 20
  // A chain that saves the input of each layer. Most is needed when backward has come to the layer behind the 32 MiB:
  // of the small maps only the first one still waits for its turn then, beside the 8 MiB before it.
  const sizes = [8, 1, 32, 1, 8, 1, 8, 1]
  const chain = sizes.map((size, at) => ({
    ...{ name: `layer${at}`, inputs: at === 0 ? [] : [at - 1], outBytes: size * MIB },
    ...{ paramBytes: 0, flops: 1e9, savesInput: 'both' as const, savesOutput: false },
  }))
  const profile = buildProfile('chain', chain, { ...SYNTHETIC_DEVICE, copyRatio: 1 })
  const refuse = (smallestBytes: number) => {
    const outcome = planMemory(profile, { budgetBytes: 1, profileHash: 'test', smallestBytes })
    return outcome.kind === 'infeasible' ? outcome : assert.fail()
  }
  const [none, some] = [refuse(0), refuse(2 * MIB)]
  assert.deepEqual(some.leftOut, { storages: 1, bytes: MIB, leastBytes: none.leastBytes })
  assert.equal(some.leastBytes, none.leastBytes + MIB)
  assert.deepEqual(none.leftOut, { storages: 0, bytes: 0, leastBytes: none.leastBytes })
})

test('planMemory gives the plan of the golden file, byte for byte', async () => {
  const { profile, hash } = await readProfile('fixtures/memory/convnet.profile.json')
  const golden = readFileSync('fixtures/memory/convnet.plan.json', 'utf8')
  const { budgetBytes, options } = JSON.parse(golden) as MemoryPlan
  const request = { budgetBytes, profileHash: hash, smallestBytes: options.smallestBytes }
  assert.equal(formatPlanFile(plan(profile, request)), golden, 'a changed format needs a new PLAN_VERSION')
  assert.equal(formatPlanFile(plan(structuredClone(profile), request)), golden)
})

test('planMemory leaves what is saved and never asked for where it is: nobody would bring it back', async () => {
  const { profile } = await readProfile('fixtures/memory/convnet.profile.json')
  const golden = JSON.parse(readFileSync('fixtures/memory/convnet.plan.json', 'utf8')) as MemoryPlan
  const { storage, bytes } = golden.moves[0]!
  const request = {
    budgetBytes: golden.budgetBytes + bytes,
    smallestBytes: golden.options.smallestBytes,
  }
  const tensors = profile.tensors.map((one) => (one.storage === storage ? { ...one, unpack: [] } : one))
  const made = plan({ ...profile, tensors }, request)
  assert.ok(made.moves.length > 0 && made.moves.every((move) => move.storage !== storage))
  assert.match(made.keep.find((one) => one.storage === storage)!.why, /never asked for/)
})

test('planMemory moves half of 48 equal layers for nothing when a copy takes as long as a forward', () => {
  const profile = buildProfile('uniform', uniform(48, 64 * 2 ** 20), { ...SYNTHETIC_DEVICE, copyRatio: 1 })
  const made = plan(profile, { budgetBytes: budgetOf(profile, 0.5) })
  assert.ok(made.moves.length >= 23 && made.moves.length <= 26, `${made.moves.length} moves`)
  assert.ok(made.predicted.stallMs <= 0.01 * made.predicted.baseMs, `stall ${made.predicted.stallMs}`)
})

test('planMemory brings parameters back per layer when they may move, and never returns their gradients', () => {
  const profile = buildProfile('GPT', NETWORKS.GPT!, { ...SYNTHETIC_DEVICE, copyRatio: 0.5 })
  const extras = ['param', 'param_grad', 'opt_state'] as const
  const least = planMemory(profile, { budgetBytes: 1, profileHash: 'test', extras })
  const without = planMemory(profile, { budgetBytes: 1, profileHash: 'test' })
  assert.ok(least.kind === 'infeasible' && without.kind === 'infeasible')
  const savedBytes = without.leastBytes - least.leastBytes
  assert.ok(savedBytes > 0.5 * sumPersistentBytes(profile), `${savedBytes} bytes`)
  const budgetBytes = Math.floor(1.2 * least.leastBytes)
  const made = plan(profile, { budgetBytes, extras })
  assert.deepEqual(simulatePlan(profile, made, { capacityBytes: budgetBytes }).violations, [])
  const events = 3 * profile.layers.length
  const back = made.moves.filter(({ kind, useAt }) => kind === 'param' && useAt < events)
  assert.ok(back.length > 0 && back.every(({ freeBy, inAt, useAt }) => freeBy <= inAt && inAt <= useAt))
  for (const move of made.moves.filter(({ kind }) => kind === 'param_grad')) assert.equal(move.inAt, events)
})

test('planMemory with reuse plans for the step that was recorded with it, and moves maps that live on into slots', () => {
  const plain = buildProfile('GPT', NETWORKS.GPT!, { ...SYNTHETIC_DEVICE, copyRatio: 1 })
  const { storage, bytes } = plain.tensors.find(({ kind }) => kind === 'feature')!
  const tensors = plain.tensors
    .filter(({ kind }) => kind !== 'opt_state') // any that the floor holds: what matters is which list is planned
    .map((tensor) => (tensor.storage === storage ? { ...tensor, pack: [0] } : tensor))
  const profile = { ...plain, packLayers: [3], reuse: { packs: [0], tensors } }
  const budgetBytes = budgetOf(profile, 0.6)
  const before = plan(profile, { budgetBytes })
  const after = plan(profile, { budgetBytes, canReuse: true })
  assert.deepEqual(before.reuse, [])
  assert.deepEqual(after.reuse, [{ pack: 0, layer: 3, storage, bytes }])
  const [without, reusing] = [false, true].map((canReuse) =>
    planMemory(profile, { budgetBytes: 1, profileHash: 'test', canReuse }),
  )
  assert.ok(without?.kind === 'infeasible' && reusing?.kind === 'infeasible')
  assert.ok(reusing.leastBytes < without.leastBytes, `${reusing.leastBytes}`)
  assert.equal(after.predicted.unplannedPeakBytes, before.predicted.unplannedPeakBytes)
  assert.equal(after.arenas.reload.mode, 'slots')
})

test('copies that were late in a run start earlier in the next plan', () => {
  const profile = buildProfile('GPT', NETWORKS.GPT!, { ...SYNTHETIC_DEVICE, copyRatio: 1 })
  const budgetBytes = budgetOf(profile, 0.6)
  const before = plan(profile, { budgetBytes })
  const late = before.moves.find((move) => move.useAt - move.inAt < 20 && move.inAt > move.freeBy + 60)!
  const after = plan(profile, { budgetBytes, latenessUs: new Map([[late.storage, 3000]]) })
  const moved = after.moves.find(({ storage }) => storage === late.storage)!
  assert.ok(moved.inAt < late.inAt, `${moved.inAt} is not before ${late.inAt}`)
})

const randomNodes = fc
  .array(
    fc.record({
      back: fc.array(fc.nat(6), { minLength: 1, maxLength: 2 }),
      kilobytes: fc.integer({ min: 1, max: 4096 }),
      params: fc.integer({ min: 0, max: 512 }),
      flops: fc.integer({ min: 1, max: 1000 }),
      savesInput: fc.constantFrom('param' as const, 'both' as const, 'none' as const),
      savesOutput: fc.boolean(),
    }),
    { minLength: 3, maxLength: 40 },
  )
  .map((rows) =>
    rows.map(
      (row, at): SyntheticNode => ({
        name: `node${at}`,
        inputs: at === 0 ? [] : [...new Set(row.back.map((back) => Math.max(0, at - 1 - back)))],
        outBytes: row.kilobytes * 1024,
        paramBytes: row.params * 1024,
        flops: row.flops * 1e7,
        savesInput: row.savesInput,
        savesOutput: row.savesOutput,
      }),
    ),
  )

test('a plan for any graph and feasible budget is sound, on slow and failing links too', () => {
  const seed = Date.now() & 0x7fffffff
  process.stdout.write(`# seed ${seed}\n`)
  fc.assert(
    fc.property(
      randomNodes,
      fc.double({ min: 0, max: 1, noNaN: true }),
      fc.constantFrom(0.2, 1, 4),
      fc.integer({ min: 0, max: 3 }),
      (nodes, share, copyRatio, failures) => {
        const profile = buildProfile('random', nodes, { ...SYNTHETIC_DEVICE, copyRatio })
        const request = { profileHash: 'test', smallestBytes: 0 }
        const least = planMemory(profile, { ...request, budgetBytes: 0 })
        assert.equal(least.kind, 'infeasible')
        const leastBytes = least.kind === 'infeasible' ? least.leastBytes : 0
        const roomy = plan(profile, { ...request, budgetBytes: Number.MAX_SAFE_INTEGER })
        const spare = roomy.predicted.unplannedPeakBytes - leastBytes
        const budgetBytes = leastBytes + Math.floor(share * spare)
        const made = plan(profile, { ...request, budgetBytes })
        assert.deepEqual(plan(profile, { ...request, budgetBytes }), made)
        const { stallMs, leastStallMs } = made.predicted
        assert.ok(leastStallMs <= stallMs + 0.001, `a stall of ${stallMs} ms beats the bound ${leastStallMs}`)
        for (const isEager of [false, true]) {
          const run = simulatePlan(profile, made, {
            capacityBytes: budgetBytes,
            isEager,
            faults: {
              copySlowdown: (copy) => 1 + (copy % 5),
              computeSlowdown: (event) => 1 + (event % 3),
              copyFailures: (copy) => (copy % 3 === 0 ? failures : 0),
            },
          })
          assert.deepEqual(run.violations, [])
          assert.ok(run.peakBytes <= budgetBytes)
        }
        assertNoOverlap(made)
      },
    ),
    { numRuns: 150, seed },
  )
})

function assertNoOverlap(made: MemoryPlan): void {
  const rows = made.moves.filter(({ kind }) => kind === 'feature')
  rows.forEach((a, at) => {
    for (const b of rows.slice(at + 1)) {
      const sharesHostTime = a.outAfter <= b.useAt && b.outAfter <= a.useAt
      const sharesHost = a.hostOffset < b.hostOffset + b.bytes && b.hostOffset < a.hostOffset + a.bytes
      assert.ok(!(sharesHostTime && sharesHost), `host slots of ${a.storage} and ${b.storage}`)
      if (a.reloadOffset === null || b.reloadOffset === null) continue
      const sharesTime = a.inAt <= b.until && b.inAt <= a.until
      const sharesSpace =
        a.reloadOffset < b.reloadOffset + b.bytes && b.reloadOffset < a.reloadOffset + a.bytes
      assert.ok(!(sharesTime && sharesSpace), `reload slots of ${a.storage} and ${b.storage}`)
    }
  })
}
