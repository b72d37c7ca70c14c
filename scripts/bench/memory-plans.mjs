// Measures plans on the simulated device and how long they take to make: for memory.mjs.
import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { drawPlan } from '../../dist/memory/explain/explain-plan.js'
import { planMemory } from '../../dist/memory/plan/plan-memory.js'
import { simulatePlan } from '../../dist/memory/plan/simulate-plan.js'
import { findLifetimes, sumLiveBytes } from '../../dist/memory/step/lifetimes.js'
import { layOutTimeline } from '../../dist/memory/step/timeline.js'
import { planWays } from '../../dist/memory/ways/choose-ways.js'
import { offloadAll } from '../../dist/memory/ways/offload-all.js'
import { sumPersistentBytes } from '../../dist/testing/persistent-bytes.js'
import { gpt, resnet50, unet } from '../../dist/testing/synthetic-networks.js'
import { buildProfile, SYNTHETIC_DEVICE } from '../../dist/testing/synthetic-profile.js'

const NETWORKS = {
  'ResNet-50, batch 64': resnet50(64),
  'GPT, 24 × 1024, batch 8 × 1024': gpt({
    batch: 8,
    context: 1024,
    width: 1024,
    blocks: 24,
    vocabulary: 50257,
  }),
  'U-Net, batch 8, 256²': unet(8, 256),
}
const SHARES = [0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2]
const RATIOS = [0.5, 1, 1.5, 2, 3]

if (process.argv[2] === '--plan') {
  process.stdout.write(JSON.stringify(timePlans(JSON.parse(process.argv[3]))))
}

export function median(values) {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]
}

/** Stall of plans for three networks, over budgets and bandwidths. */
export function planQuality(say) {
  say('## Plan quality on the simulated device')
  say()
  say(
    'The simulated device runs the plan by itself; its profiles are arithmetic (60 TFLOP/s, 2 TB/s), not recordings.',
  )
  say()
  say(
    'Stall in percent of the step without stalls. x = time to copy all feature maps out, in forward passes. The budget is',
  )
  say(
    "a share of the activations' peak. In brackets: a bound that no plan can beat. *All, waiting* and *all, on demand* move",
  )
  say(
    'every map and fetch it when asked for (what tools without a plan do); they take no budget, their peak is given.',
  )
  say()
  let broken = 0
  let plans = 0
  for (const [name, nodes] of Object.entries(NETWORKS)) {
    say(`### ${name}`)
    say()
    say(
      `| x | ${SHARES.map((share) => `${100 * share} %`).join(' | ')} | all, waiting (peak) | all, on demand (peak) |`,
    )
    say(`|---|${SHARES.map(() => '---|').join('')}---|---|`)
    for (const copyRatio of RATIOS) {
      const profile = buildProfile(name, nodes, { ...SYNTHETIC_DEVICE, copyRatio })
      const fixed = sumPersistentBytes(profile)
      const roomy = planMemory(profile, { budgetBytes: Number.MAX_SAFE_INTEGER, profileHash: 'bench' }).plan
      const natural = roomy.predicted.unplannedPeakBytes - fixed
      const cells = SHARES.map((share) => {
        const budgetBytes = Math.floor(fixed + share * natural)
        const outcome = planMemory(profile, { budgetBytes, profileHash: 'bench' })
        if (outcome.kind === 'infeasible')
          return `needs ${Math.ceil((100 * (outcome.leastBytes - fixed)) / natural)} %`
        plans++
        const run = simulatePlan(profile, outcome.plan, { capacityBytes: budgetBytes })
        broken += run.violations.length
        const { leastStallMs, baseMs } = outcome.plan.predicted
        return `${percent(run.stallUs / run.computeUs)} (${percent(leastStallMs / baseMs)})`
      })
      const blind = [true, false].map((isBlocking) => {
        const run = simulatePlan(profile, offloadAll(profile, { isBlocking }), {
          capacityBytes: Number.MAX_SAFE_INTEGER,
          isEager: true,
        })
        return `${percent(run.stallUs / run.computeUs)} (${Math.round((100 * (run.peakBytes - fixed)) / natural)} %)`
      })
      say(`| ${copyRatio} | ${cells.join(' | ')} | ${blind.join(' | ')} |`)
    }
    say()
  }
  say(`${plans} plans; promises broken on the simulated device: ${broken}.`)
  say()
}

/** The picture of one step. */
export function timeline(say) {
  const profile = buildProfile(
    'GPT',
    gpt({ batch: 8, context: 1024, width: 1024, blocks: 12, vocabulary: 50257 }),
    {
      ...SYNTHETIC_DEVICE,
      copyRatio: 1,
    },
  )
  const fixed = sumPersistentBytes(profile)
  const roomy = planMemory(profile, { budgetBytes: Number.MAX_SAFE_INTEGER, profileHash: 'bench' }).plan
  const budgetBytes = Math.floor(fixed + 0.5 * (roomy.predicted.unplannedPeakBytes - fixed))
  const { plan } = planMemory(profile, { budgetBytes, profileHash: 'bench' })
  writeFileSync('docs/benchmarks/memory-timeline.svg', drawPlan(profile, plan))
  say('## One step of a GPT at half its activations')
  say()
  say('![memory over one step, planned and unplanned](memory-timeline.svg)')
  say()
}

/** Time of plans that only move, and of those that recompute, too: the first call of a fresh process, and later ones. */
export function plannerTime(say, isShort) {
  say('## Planner time')
  say()
  say(
    'Processor time (user + system) of the first call in a fresh process / median of the calls after it. x = time to copy',
  )
  say(
    'all feature maps out, in forward passes. *Again*: blocks may run their forward again, as with `--recompute`.',
  )
  say()
  const shares = [0.9, 0.5, 0.3]
  const heads = ['', ', again'].flatMap((way) => shares.map((share) => `${100 * share} %${way}`))
  say(`| tensors | x | ${heads.join(' | ')} |`)
  say(`|---|---|${heads.map(() => '---|').join('')}`)
  for (const blocks of [24, 263]) {
    for (const copyRatio of [0.5, 1, 2, 3, 8]) {
      let tensors = 0
      const cells = [false, true].flatMap((isAgain) =>
        shares.map((share) => {
          const job = JSON.stringify({ blocks, copyRatio, share, isAgain, times: isShort ? 4 : 8 })
          const child = spawnSync(process.execPath, [import.meta.filename, '--plan', job], {
            encoding: 'utf8',
          })
          if (child.status !== 0) throw new Error(`planning ended with ${child.status}: ${child.stderr}`)
          const { count, firstMs, nextMs } = JSON.parse(child.stdout)
          tensors = count
          return `${firstMs.toFixed(0)} / ${nextMs.toFixed(0)} ms`
        }),
      )
      say(`| ${tensors} | ${copyRatio} | ${cells.join(' | ')} |`)
    }
  }
  say()
}

function timePlans({ blocks, copyRatio, share, isAgain, times }) {
  const nodes = gpt({ batch: 8, context: 1024, width: 1024, vocabulary: 50257, blocks })
  const profile = buildProfile('GPT', nodes, { ...SYNTHETIC_DEVICE, copyRatio })
  const fixed = sumPersistentBytes(profile)
  // The peak without a plan, found without planning: the first call below must be the process's first.
  const timeline = layOutTimeline(profile)
  const lifetimes = findLifetimes(profile, timeline, { canReuse: false })
  const natural = Math.max(...sumLiveBytes(lifetimes, timeline.events.length, 0)) - fixed
  const plan = isAgain ? planWays : planMemory
  const [firstMs, ...nextMs] = Array.from({ length: times }, () => {
    const before = process.cpuUsage()
    plan(profile, { budgetBytes: Math.floor(fixed + share * natural), profileHash: 'bench' })
    const { user, system } = process.cpuUsage(before)
    return (user + system) / 1000
  })
  return { count: profile.tensors.length, firstMs, nextMs: median(nextMs) }
}

function percent(share) {
  return `${(100 * share).toFixed(1)} %`
}
