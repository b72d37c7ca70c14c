import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { fillBuckets } from './buckets.js'
import { ringCallCost } from './cost-model.js'
import { countElements, countLayers, gradientsOfModel, type ModelLayer } from './gradient.js'
import { openEarly } from './open-early.js'
import { planOptimum } from './optimum.js'
import { planExchange } from './plan-exchange.js'
import { simulateBuckets, simulateCycles } from './simulate-buckets.js'
import { planThreshold } from './threshold.js'

const MIB = 1024 * 1024

function* grid() {
  for (const ranks of [2, 4, 8, 16, 32, 64])
    for (const alphaSeconds of [20e-6, 100e-6, 500e-6, 1e-3, 5e-3])
      for (const backwardSeconds of [0.05, 0.1, 0.2, 0.4])
        for (const gigabits of [1, 10, 25, 100])
          for (const bytesPerElement of [4, 2])
            yield { ranks, alphaSeconds, backwardSeconds, gigabits, bytesPerElement }
}

for (const { model, limit, worst } of [
  { model: 'resnet-152', limit: 1.04, worst: 1.4 },
  { model: 'bert-large', limit: 1.05, worst: 1.4 },
  { model: 'vgg-16', limit: 1.02, worst: 1.4 },
]) {
  test(`the threshold stays within ${limit} of the optimum on average over 960 cases of ${model}`, () => {
    const file = new URL(`../../../fixtures/exchange/${model}.json`, import.meta.url)
    const { layers } = JSON.parse(readFileSync(file, 'utf8')) as { layers: ModelLayer[] }
    const ratios: number[] = []
    const overstated: number[] = []
    const early: number[] = []
    const totals = { threshold: 0, ddp: 0, horovod: 0 }
    for (const { ranks, alphaSeconds, backwardSeconds, gigabits, bytesPerElement } of grid()) {
      const gradients = gradientsOfModel(layers, backwardSeconds)
      const cost = ringCallCost({ alphaSeconds, bandwidthBytesPerSecond: (gigabits * 1e9) / 8 }, ranks)
      const threshold = (alphaFactor: number) =>
        planThreshold({
          ranks,
          layers: countLayers(gradients),
          backwardSeconds,
          wireBytes: countElements(gradients) * bytesPerElement,
          cost: { ...cost, callSeconds: cost.callSeconds * alphaFactor },
        }).bytes / bytesPerElement
      const run = (buckets: ReturnType<typeof fillBuckets>) =>
        simulateBuckets(gradients, buckets, { bytesPerElement, cost }).finishSeconds
      const best = run(planOptimum(gradients, { bytesPerElement, cost }))
      const chosen = run(fillBuckets(gradients, threshold(1)))
      early.push(run(openEarly(gradients, threshold(1), { bytesPerElement, cost })) / best)
      totals.threshold += chosen
      totals.ddp += run(fillBuckets(gradients, (25 * MIB) / 4, MIB / 4))
      totals.horovod += simulateCycles(gradients, {
        cycleSeconds: 5e-3,
        limitBytes: 64 * MIB,
        bytesPerElement,
        cost,
      }).finishSeconds
      ratios.push(chosen / best)
      overstated.push(run(fillBuckets(gradients, threshold(2))) / best)
    }
    const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length
    const average = mean(ratios)
    assert.equal(ratios.length, 960)
    assert.ok(average <= limit, `mean ${average}`)
    assert.ok(
      early.every((ratio, index) => ratio <= ratios[index]!),
      'an early first bucket never costs',
    )
    assert.ok(mean(early) <= 1 + (limit - 1) / 2, `mean ${mean(early)} where the first bucket leaves early`)
    assert.ok(Math.max(...ratios) <= worst, `worst ${Math.max(...ratios)}`)
    assert.ok(mean(overstated) <= average * 1.05, `with twice the latency: mean ${mean(overstated)}`)
    assert.ok(totals.threshold < totals.ddp, `${totals.threshold} s against DDP's ${totals.ddp} s`)
    assert.ok(
      totals.threshold < totals.horovod,
      `${totals.threshold} s against Horovod's ${totals.horovod} s`,
    )
  })
}

test('a plan never ends later than DDP with its own buckets, on the grid', () => {
  const worse: string[] = []
  for (const model of ['resnet-152', 'bert-large', 'vgg-16']) {
    const file = new URL(`../../../fixtures/exchange/${model}.json`, import.meta.url)
    const { layers } = JSON.parse(readFileSync(file, 'utf8')) as { layers: ModelLayer[] }
    for (const { ranks, alphaSeconds, backwardSeconds, gigabits, bytesPerElement } of grid()) {
      const gradients = gradientsOfModel(layers, backwardSeconds)
      const link = { alphaSeconds, bandwidthBytesPerSecond: (gigabits * 1e9) / 8 }
      const wireBytes = bytesPerElement === 2 ? 2 : 4
      const { buckets, ddp } = planExchange({
        gradients,
        backwardSeconds,
        ranks,
        link,
        wireBytes,
        gradientBytes: 4,
      })
      const finish = (cut: ReturnType<typeof fillBuckets>) =>
        simulateBuckets(gradients, cut, { bytesPerElement, cost: ringCallCost(link, ranks) }).finishSeconds
      const own = finish(fillBuckets(gradients, (25 * MIB) / 4, MIB / 4))
      const where = `${model}, ${ranks} ranks, ${alphaSeconds} s, ${gigabits} Gb/s, ${backwardSeconds} s`
      if (finish([...buckets]) > own) worse.push(where)
      // The buckets of an older PyTorch: every bucket has the only cap that it knows.
      const capElements = ((ddp.bucket_cap_mb ?? Number.NaN) * MIB) / 4
      if (ddp.bucket_cap_mb !== undefined && finish(fillBuckets(gradients, capElements)) > own * 1.0001)
        worse.push(`${where}, one cap`)
    }
  }
  assert.deepEqual(worse.slice(0, 5), [], `${worse.length} of 2880 cases`)
})
