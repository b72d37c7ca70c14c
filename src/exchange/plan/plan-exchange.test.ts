import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fillBuckets } from './buckets.js'
import { ringCallCost } from './cost-model.js'
import { fitLink } from './fit-link.js'
import type { Gradient } from './gradient.js'
import { planOptimum } from './optimum.js'
import { planExchange } from './plan-exchange.js'
import { simulateBuckets, simulateCycles } from './simulate-buckets.js'

const MIB = 1024 * 1024
const even = (count: number, elements: number, seconds: number): Gradient[] =>
  Array.from({ length: count }, (_, layer) => ({
    name: `layer${layer}`,
    elements,
    layer,
    readySeconds: ((layer + 1) * seconds) / count,
  }))

test('fillBuckets closes at the cap, never splits and gives the first bucket its own cap', () => {
  const sizes = (cap: number, first?: number) =>
    fillBuckets(even(5, 10, 1), cap, first).map(({ elements }) => elements)
  assert.deepEqual(sizes(20), [20, 20, 10])
  assert.deepEqual(sizes(15), [20, 20, 10])
  assert.deepEqual(sizes(30, 1), [10, 30, 10])
  assert.deepEqual(sizes(0), [10, 10, 10, 10, 10])
})

test('fitLink recovers α and B from noisy probes with one outlier', () => {
  const time = (bytes: number) => 50e-6 + bytes / 1.25e9
  const probes = [1, 1024, 65536, MIB, 4 * MIB, 16 * MIB].map((bytes) => ({
    bytes,
    seconds: [time(bytes) * 0.99, time(bytes), time(bytes) * 1.01, time(bytes) * 9],
  }))
  const link = fitLink(probes)
  assert.ok(Math.abs(link.alphaSeconds - 50e-6) < 3e-6, `${link.alphaSeconds}`)
  assert.ok(Math.abs(link.bandwidthBytesPerSecond / 1.25e9 - 1) < 0.02, `${link.bandwidthBytesPerSecond}`)
  assert.throws(() => fitLink(probes.slice(0, 3)), RangeError)
})

test('the optimum is never worse than any cap, and equals brute force on small lists', () => {
  const cost = ringCallCost({ alphaSeconds: 2e-3, bandwidthBytesPerSecond: 1e8 }, 4)
  const gradients = even(9, 0, 0.05).map((gradient, index) => ({
    ...gradient,
    elements: 1 + ((index * 7) % 5) * 9000,
  }))
  const finish = (buckets: ReturnType<typeof fillBuckets>) =>
    simulateBuckets(gradients, buckets, { bytesPerElement: 4, cost }).finishSeconds
  let best = Number.POSITIVE_INFINITY
  for (let cuts = 0; cuts < 1 << 8; cuts++) {
    const buckets: ReturnType<typeof fillBuckets> = []
    let from = 0
    for (let to = 1; to <= 9; to++) {
      if (to < 9 && !(cuts & (1 << (to - 1)))) continue
      const elements = gradients.slice(from, to).reduce((sum, gradient) => sum + gradient.elements, 0)
      buckets.push({ from, to, elements })
      from = to
    }
    best = Math.min(best, finish(buckets))
  }
  assert.ok(Math.abs(finish(planOptimum(gradients, { bytesPerElement: 4, cost })) - best) < 1e-12)
})

test('a coordinator waits for its cycle and fuses what is ready', () => {
  const cost = { callSeconds: 1e-3, secondsPerByte: 0 }
  const options = { cycleSeconds: 5e-3, limitBytes: 80, bytesPerElement: 4, cost }
  // Ready at 2, 4, 6, 8, 10 ms: two go at 5 ms, three (limit 80 bytes = two per call) at 10 ms.
  const step = simulateCycles(even(5, 10, 10e-3), options)
  assert.equal(step.calls, 3)
  assert.ok(Math.abs(step.finishSeconds - 12e-3) < 1e-12)
})

test('planExchange gives DDP its cap in gradient bytes and the optimum as a list', () => {
  const input = {
    gradients: even(14, MIB, 0.15),
    backwardSeconds: 0.15,
    ranks: 2,
    link: { alphaSeconds: 1e-3, bandwidthBytesPerSecond: 125e6 },
    wireBytes: 2,
    gradientBytes: 4,
  } as const
  const plan = planExchange(input)
  assert.equal(plan.threshold.rule, 'saturated')
  assert.ok(Math.abs((plan.ddp.bucket_cap_mb ?? 0) * MIB - plan.threshold.bytes * 2) < 1000)
  const best = planExchange({ ...input, useOptimum: true })
  assert.equal(best.ddp.bucket_cap_mb_list?.length, best.buckets.length)
  assert.deepEqual(planExchange({ ...input, ranks: 1 }).ddp, {})
  const exposed = (name: string) =>
    plan.alternatives.find((row) => row.name === name)?.exposedSeconds ?? Number.NaN
  assert.ok(exposed('optimum') <= exposed('threshold'))
  assert.ok(exposed('threshold') < exposed('one bucket'))
})
