import assert from 'node:assert/strict'
import { test } from 'node:test'
import { sumPersistentBytes } from '../../testing/persistent-bytes.js'
import { gpt } from '../../testing/synthetic-networks.js'
import { buildProfile, SYNTHETIC_DEVICE } from '../../testing/synthetic-profile.js'
import { planWays } from '../ways/choose-ways.js'
import { traceBudgets } from './budget-curve.js'
import { drawCurve } from './draw-curve.js'
import { sumPlan } from './sum-plan.js'

const profile = buildProfile(
  'GPT',
  gpt({ batch: 8, context: 512, width: 512, blocks: 6, vocabulary: 8000 }),
  { ...SYNTHETIC_DEVICE, copyRatio: 4 },
)

function planAt(share: number) {
  const roomy = planWays(profile, { budgetBytes: Number.MAX_SAFE_INTEGER })
  assert.ok(roomy.kind === 'planned')
  const fixed = sumPersistentBytes(profile)
  const budgetBytes = Math.floor(fixed + share * (roomy.plan.predicted.peakBytes - fixed))
  const outcome = planWays(profile, { budgetBytes })
  assert.ok(outcome.kind === 'planned')
  return { plan: outcome.plan, full: roomy.plan }
}

test('the curve of a plan goes from half its budget to the peak without a plan, where the step is shortest', () => {
  const { plan, full } = planAt(0.5)
  assert.ok(plan.recompute.length > 0 && plan.moves.length > 0)
  const points = traceBudgets(profile, plan)
  const own = points.find(({ budgetBytes }) => budgetBytes === plan.budgetBytes)
  assert.equal(own?.stepMs, plan.predicted.stepMs)
  assert.equal(points.at(-1)?.budgetBytes, full.predicted.peakBytes)
  assert.equal(points.at(-1)?.stepMs, full.predicted.baseMs)
  const fitting = points.flatMap(({ stepMs }) => stepMs ?? [])
  assert.ok(fitting.every((stepMs, at) => stepMs <= 1.03 * (fitting[at - 1] ?? Number.POSITIVE_INFINITY)))
  const picture = drawCurve(points, plan.budgetBytes)
  assert.equal(picture.match(/<circle/g)?.length, fitting.length)
  assert.equal(picture.match(/fill="#b91c1c"><title>/g)?.length, 1)
})

test('every saved feature map stays, is recomputed or moves: the sums are those of a plan that keeps all', () => {
  const { plan, full } = planAt(0.5)
  const { totals, modules, lines } = sumPlan(profile, plan)
  assert.deepEqual(lines, [], 'profiles without lines have none')
  const { keptBytes, recomputedBytes, movedBytes } = totals
  assert.ok(keptBytes > 0 && recomputedBytes > 0 && movedBytes > 0)
  assert.equal(keptBytes + recomputedBytes + movedBytes, sumPlan(profile, full).totals.keptBytes)
  assert.equal(
    movedBytes,
    plan.moves.reduce((sum, { bytes }) => sum + bytes, 0),
  )
  assert.equal(
    modules.reduce((sum, one) => sum + one.recomputedBytes, 0),
    recomputedBytes,
  )
  assert.deepEqual(
    modules
      .filter((one) => one.recomputedBytes > 0)
      .map(({ name }) => name)
      .sort(),
    plan.recompute.map(({ name }) => name).sort(),
  )
})

test('sums by line of code come to those of the step, largest first', () => {
  const known = {
    ...profile,
    tensors: profile.tensors.map((one) => ({ ...one, line: `gpt.py:${one.producer.layer % 3}` })),
  }
  const { totals, lines } = sumPlan(known, planAt(0.5).plan)
  const sizes = lines.map((one) => one.keptBytes + one.recomputedBytes + one.movedBytes)
  assert.deepEqual(lines.map(({ name }) => name).sort(), ['gpt.py:0', 'gpt.py:1', 'gpt.py:2'])
  assert.deepEqual(
    sizes,
    sizes.toSorted((a, b) => b - a),
  )
  assert.equal(
    lines.reduce((sum, one) => sum + one.movedBytes, 0),
    totals.movedBytes,
  )
})
