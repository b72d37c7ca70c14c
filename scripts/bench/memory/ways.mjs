// Compares plans that keep, recompute and move with fixed recipes on the simulated device.

import { planMemory } from '../../../dist/memory/plan/plan-memory.js'
import { simulatePlan } from '../../../dist/memory/plan/simulate-plan.js'
import { findBlocks } from '../../../dist/memory/step/find-blocks.js'
import { findLifetimes, sumLiveBytes } from '../../../dist/memory/step/lifetimes.js'
import { recomputeBlocks, sumForwardUs } from '../../../dist/memory/step/recompute-blocks.js'
import { layOutTimeline } from '../../../dist/memory/step/timeline.js'
import { planWays } from '../../../dist/memory/ways/choose-ways.js'
import { offloadAll } from '../../../dist/memory/ways/offload-all.js'
import { gpt, resnet50, unet } from '../../../dist/testing/synthetic-networks.js'
import { buildProfile, SYNTHETIC_DEVICE } from '../../../dist/testing/synthetic-profile.js'
import { llama } from '../../../dist/testing/synthetic-transformers.js'
import { table } from '../harness/tables.mjs'
import { percent, sizeUp } from './plans.mjs'

const WIDE = { batch: 4, context: 2048, width: 1024, hidden: 2816, vocabulary: 32000 }
const NETWORKS = {
  'Llama-like, 16 × 1024, batch 4 × 2048': llama({ ...WIDE, blocks: 16, experts: 0 }),
  'MoE, 8 × 1024, 8 experts': llama({ ...WIDE, blocks: 8, experts: 8 }),
  'ViT, 12 × 768, batch 64 × 197': gpt({ batch: 64, context: 197, width: 768, blocks: 12, vocabulary: 1000 }),
  'U-Net, batch 8, 256²': unet(8, 256),
  'ResNet-50, batch 64': resnet50(64),
}
const SHARES = [0.7, 0.5, 0.3]
const RATIOS = [1, 2, 4, 8]

/** Steps of plans beside those of the recipes, over budgets and links. */
export function waysQuality({ isShort }) {
  const heads = [
    'x',
    ...SHARES.map((share) => `plan at ${100 * share} %`),
    'again',
    'again, inputs moved',
    'all moved',
  ]
  return Object.entries(
    isShort ? { 'ResNet-50, batch 64': NETWORKS['ResNet-50, batch 64'] } : NETWORKS,
  ).flatMap(([name, nodes]) => {
    const rows = (isShort ? [2] : RATIOS).map((copyRatio) => {
      const profile = buildProfile(name, nodes, { ...SYNTHETIC_DEVICE, copyRatio })
      const sizes = sizeUp(profile)
      return [copyRatio, ...planned(profile, sizes), ...recipes(profile, sizes)]
    })
    return [`### ${name}\n`, ...table(heads, rows)]
  })
}

function planned(profile, { fixed, natural, baseMs }) {
  return SHARES.map((share) => {
    const budgetBytes = Math.floor(fixed + share * natural)
    const outcome = planWays(profile, { budgetBytes })
    if (outcome.kind === 'infeasible') return 'does not fit'
    return `${percent(outcome.plan.predicted.stepMs / baseMs)} (${percent(leastStepMs(profile, budgetBytes) / baseMs)})`
  })
}

function recipes(profile, { fixed, natural, baseMs }) {
  const again = recomputeBlocks(profile, findBlocks(profile))
  const { plan } = planMemory(again, { budgetBytes: Number.MAX_SAFE_INTEGER, profileHash: 'bench' })
  const blind = [offloadAll(again, { isBlocking: true }), offloadAll(profile, { isBlocking: false })]
  return [plan, ...blind].map((one, at) => {
    const how = { capacityBytes: Number.MAX_SAFE_INTEGER, isEager: true }
    const run = simulatePlan(at < 2 ? again : profile, one, how)
    return `${percent(run.stepUs / 1000 / baseMs)}, peak ${percent((run.peakBytes - fixed) / natural)}`
  })
}

/**
 * A step that no plan can beat: what is alive above the budget at the fullest event was not saved, at the least time per
 * byte of any block, in fractions of blocks, or has left through the link, for which there was all of the time before.
 */
function leastStepMs(profile, budgetBytes) {
  const timeline = layOutTimeline(profile)
  const lifetimes = findLifetimes(profile, timeline, { canReuse: false })
  const live = sumLiveBytes(lifetimes, timeline.events.length, profile.nonTorchBytes)
  const event = live.indexOf(Math.max(...live))
  const over = live[event] - budgetBytes
  const blocks = findBlocks(profile).map((block) => {
    const layers = new Set(block.layers)
    const bytes = lifetimes.reduce((sum, one) => {
      const isFreed = one.from < event && event <= one.to && layers.has(timeline.events[one.from].layer)
      return sum + (isFreed && one.kind === 'feature' ? one.bytes : 0)
    }, 0)
    return { bytes, us: sumForwardUs(profile, block) }
  })
  const beforeUs = timeline.startUs[event]
  let least = Number.POSITIVE_INFINITY
  let freed = 0
  let us = 0
  const stallUs = () => Math.max(0, (over - freed) / (profile.device.d2hGBs * 1e3) - beforeUs - us)
  least = Math.min(least, stallUs())
  for (const block of blocks
    .filter(({ bytes }) => bytes > 0)
    .sort((a, b) => a.us / a.bytes - b.us / b.bytes)) {
    const needed = Math.min(1, Math.max(0, over - freed) / block.bytes)
    freed += needed * block.bytes
    us += needed * block.us
    least = Math.min(least, us + stallUs())
  }
  return (timeline.startUs.at(-1) + least) / 1000
}
