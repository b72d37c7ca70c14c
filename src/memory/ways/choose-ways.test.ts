import assert from 'node:assert/strict'
import { test } from 'node:test'
import { sumPersistentBytes } from '../../testing/persistent-bytes.js'
import { gpt, resnet50, unet } from '../../testing/synthetic-networks.js'
import { buildProfile, SYNTHETIC_DEVICE, type SyntheticNode } from '../../testing/synthetic-profile.js'
import { planMemory } from '../plan/plan-memory.js'
import { findBlocks } from '../step/find-blocks.js'
import type { MemoryProfile } from '../step/profile.js'
import { chooseWays } from './choose-ways.js'

const SMALL_GPT = { batch: 8, context: 512, width: 512, vocabulary: 8000 }
const profileOf = (nodes: readonly SyntheticNode[], copyRatio: number) =>
  buildProfile('model', nodes, { ...SYNTHETIC_DEVICE, copyRatio })

function budgetOf(profile: MemoryProfile, share: number): number {
  const fixed = sumPersistentBytes(profile)
  return Math.floor(fixed + share * (chooseWays(profile, { budgetBytes: 2 ** 50 }).keepAll.peakBytes - fixed))
}

test('blocks are the repeated parts of a model, and the parts at its top', () => {
  const names = (nodes: readonly SyntheticNode[]) => findBlocks(profileOf(nodes, 1)).map(({ name }) => name)
  assert.deepEqual(names(gpt({ ...SMALL_GPT, blocks: 3 })), ['h.0', 'h.1', 'h.2'])
  assert.equal(names(resnet50(2)).length, 16)
  assert.equal(names(resnet50(2))[3], 'layer2.0')
  assert.deepEqual(names(unet(2, 64)).slice(0, 2), ['enc0', 'enc1'])
})

test('a recomputed block keeps its input, runs its forward again, and needs its maps only for its own backward', () => {
  const profile = profileOf(gpt({ ...SMALL_GPT, blocks: 4 }), 1)
  const blocks = findBlocks(profile)
  const peak = (chosen: typeof blocks) => {
    const outcome = planMemory(profile, { budgetBytes: 2 ** 50, profileHash: '', recompute: chosen })
    assert.ok(outcome.kind === 'planned')
    return outcome.plan.predicted
  }
  const [none, one, all] = [peak([]), peak(blocks.slice(1, 2)), peak(blocks)]
  const forwardMs = (layers: readonly number[]) =>
    profile.layers.reduce((sum, { i, fwdUs }) => sum + (layers.includes(i) ? fwdUs : 0), 0) / 1000
  assert.ok(Math.abs(one.stepMs - none.stepMs - forwardMs(blocks[1]!.layers)) < 2e-3)
  assert.ok(Math.abs(all.stepMs - none.stepMs - forwardMs(blocks.flatMap(({ layers }) => layers))) < 2e-3)
  // The tensors that a block saves for its backward, except for its input map.
  const layers = new Set(blocks[1]!.layers)
  const inside = profile.tensors
    .filter(({ kind, producer, uses }) => {
      const isSaved = uses.some(({ phase, layer }) => phase !== 'fwd' && layers.has(layer))
      return kind === 'feature' && layers.has(producer.layer) && isSaved
    })
    .reduce((sum, { bytes }) => sum + bytes, 0)
  assert.equal(none.peakBytes - one.peakBytes, inside)
})

for (const { name, nodes, shares } of [
  { name: 'GPT', nodes: gpt({ ...SMALL_GPT, blocks: 5 }), shares: [0.7, 0.5, 0.3] },
  { name: 'U-Net', nodes: unet(4, 128), shares: [0.5] },
]) {
  for (const copyRatio of [0.7, 2, 4]) {
    test(`the choice for ${name} is within 3 % of the best of all sets, copies ${copyRatio}× the forward`, () => {
      const profile = profileOf(nodes, copyRatio)
      const blocks = findBlocks(profile)
      for (const share of shares) {
        const budgetBytes = budgetOf(profile, share)
        let optimumMs = Number.POSITIVE_INFINITY
        for (let set = 0; set < 1 << blocks.length; set++) {
          const chosen = blocks.filter((_, at) => set & (1 << at))
          const outcome = planMemory(profile, { budgetBytes, profileHash: '', recompute: chosen })
          if (outcome.kind === 'planned') optimumMs = Math.min(optimumMs, outcome.plan.predicted.stepMs)
        }
        const { best } = chooseWays(profile, { budgetBytes })
        assert.equal(best === undefined, optimumMs === Number.POSITIVE_INFINITY, `${share}`)
        if (!best) continue
        assert.ok(best.stepMs <= 1.03 * optimumMs, `${share}: ${best.stepMs} ms, best ${optimumMs} ms`)
        assert.ok(best.peakBytes <= budgetBytes)
      }
    })
  }
}

test('the choice is never worse than a fixed recipe that fits, and beats each of them somewhere', () => {
  const wins = { moveOnly: 0, recomputeAll: 0, recomputeAllMoveInputs: 0 }
  for (const copyRatio of [1, 6]) {
    for (const nodes of [gpt({ ...SMALL_GPT, blocks: 8 }), resnet50(16)]) {
      const profile = profileOf(nodes, copyRatio)
      for (const share of [0.8, 0.6, 0.4]) {
        const budgetBytes = budgetOf(profile, share)
        const { best, moveOnly, recomputeAll, recomputeAllMoveInputs } = chooseWays(profile, { budgetBytes })
        assert.ok(recomputeAllMoveInputs.peakBytes <= recomputeAll.peakBytes)
        for (const [recipe, way] of Object.entries({ moveOnly, recomputeAll, recomputeAllMoveInputs })) {
          if (!way || way.peakBytes > budgetBytes) continue
          assert.ok(best!.stepMs <= way.stepMs, `${copyRatio}, ${share}: ${recipe}`)
          if (best!.stepMs < 0.98 * way.stepMs) wins[recipe as keyof typeof wins]++
        }
      }
    }
  }
  assert.ok(
    Object.values(wins).every((count) => count >= 2),
    JSON.stringify(wins),
  )
})
