// Plans on the simulated device.
import { planMemory } from '../../../dist/memory/plan/plan-memory.js'
import { simulatePlan } from '../../../dist/memory/plan/simulate-plan.js'
import { offloadAll } from '../../../dist/memory/ways/offload-all.js'
import { sumPersistentBytes } from '../../../dist/testing/persistent-bytes.js'
import { gpt, resnet50, unet } from '../../../dist/testing/synthetic-networks.js'
import { buildProfile, SYNTHETIC_DEVICE } from '../../../dist/testing/synthetic-profile.js'
import { table } from '../harness/tables.mjs'

const WIDE = { batch: 8, context: 1024, width: 1024, vocabulary: 50257 }
const NETWORKS = {
  'ResNet-50, batch 64': resnet50(64),
  'GPT, 24 × 1024, batch 8 × 1024': gpt({ ...WIDE, blocks: 24 }),
  'U-Net, batch 8, 256²': unet(8, 256),
}
const SHARES = [0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2]
const RATIOS = [0.5, 1, 1.5, 2, 3]
const ROOMY = { capacityBytes: Number.MAX_SAFE_INTEGER, isEager: true }

/** What a profile takes at any rate, and its activations beside it. */
function sizeUp(profile) {
  const fixed = sumPersistentBytes(profile)
  const { predicted } = planOf(profile, Number.MAX_SAFE_INTEGER).plan
  return { fixed, natural: predicted.unplannedPeakBytes - fixed, baseMs: predicted.baseMs }
}

function planOf(profile, budgetBytes) {
  return planMemory(profile, { budgetBytes, profileHash: 'bench' })
}

/** Stall of plans for three networks, over budgets and bandwidths. */
export function planQuality({ isShort }) {
  let [plans, broken] = [0, 0]
  const heads = [
    'x',
    ...SHARES.map((share) => `${100 * share} %`),
    'all, waiting (peak)',
    'all, on demand (peak)',
  ]
  const lines = Object.entries(NETWORKS).map(([name, nodes]) => {
    const rows = (isShort ? RATIOS.slice(1, 2) : RATIOS).map((copyRatio) => {
      const profile = buildProfile(name, nodes, { ...SYNTHETIC_DEVICE, copyRatio })
      const { fixed, natural } = sizeUp(profile)
      const cells = SHARES.map((share) => {
        const budgetBytes = Math.floor(fixed + share * natural)
        const outcome = planOf(profile, budgetBytes)
        if (outcome.kind === 'infeasible')
          return `needs ${Math.ceil((100 * (outcome.leastBytes - fixed)) / natural)} %`
        const run = simulatePlan(profile, outcome.plan, { capacityBytes: budgetBytes })
        plans += 1
        broken += run.violations.length
        const { leastStallMs, baseMs } = outcome.plan.predicted
        return `${percent(run.stallUs / run.computeUs)} (${percent(leastStallMs / baseMs)})`
      })
      const blind = [true, false].map((isBlocking) => {
        const run = simulatePlan(profile, offloadAll(profile, { isBlocking }), ROOMY)
        return `${percent(run.stallUs / run.computeUs)} (${Math.round((100 * (run.peakBytes - fixed)) / natural)} %)`
      })
      return [copyRatio, ...cells, ...blind]
    })
    return [`### ${name}\n`, ...table(heads, rows)]
  })
  return [lines.flat(), `${plans} plans; promises broken on the simulated device: ${broken}.`]
}

function percent(share) {
  return `${(100 * share).toFixed(1)} %`
}
