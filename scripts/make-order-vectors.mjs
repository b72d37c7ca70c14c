// Writes fixtures/feed/order-vectors.json and mix-vectors.json, which pin the order of samples for TypeScript and Python alike.
// Run it only to add vectors: a changed line means that resumed jobs would repeat or lose samples.
import { createHash } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { countMixed, planMixedOrder } from '../dist/feed/plan/mix.js'
import { planOrder } from '../dist/feed/plan/order.js'

const cases = []
for (const sampleCount of [1, 2, 10, 100, 1797, 65_537])
  for (const [seed, epoch] of [
    [0, 0],
    [42, 1],
    [2 ** 53 - 1, 1000],
  ])
    cases.push({ sampleCount, seed, epoch, kind: 'shuffle' })
cases.push({ sampleCount: 1000, seed: 42, epoch: 0, kind: 'feistel6' })
cases.push({ sampleCount: 70_001, seed: 7, epoch: 3, kind: 'feistel6' })
const vectors = cases.map((options) => {
  const order = planOrder(options)
  const samples = Uint32Array.from({ length: options.sampleCount }, (_, i) => order.sampleAt(i))
  return {
    ...options,
    head: [...samples.slice(0, 8)],
    sha256: createHash('sha256').update(samples).digest('hex'),
  }
})
const text = JSON.stringify({ version: 1, vectors }, null, 1)
writeFileSync(new URL('../fixtures/feed/order-vectors.json', import.meta.url), `${text}\n`)

const mixes = [
  [[1000, 1]],
  [
    [100, 2],
    [50, 0.5],
  ],
  [
    [1797, 0.1],
    [300, 1.75],
    [64, 0],
    [7, 3],
  ],
].flatMap((mix) =>
  [
    [42, 0],
    [7, 5],
  ].map(([seed, epoch]) => {
    const parts = mix.map(([sampleCount, times], i) => ({ name: `part-${i}`, sampleCount, times }))
    const sampleCount = countMixed(parts)
    const order = planMixedOrder(planOrder({ sampleCount, seed, epoch, kind: 'shuffle' }), parts, seed)
    const samples = Uint32Array.from({ length: sampleCount }, (_, i) => order.sampleAt(i))
    return {
      parts,
      seed,
      epoch,
      head: [...samples.slice(0, 8)],
      sha256: createHash('sha256').update(samples).digest('hex'),
    }
  }),
)
const mixText = JSON.stringify({ version: 1, vectors: mixes }, null, 1)
writeFileSync(new URL('../fixtures/feed/mix-vectors.json', import.meta.url), `${mixText}\n`)
