import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type ConformanceOptions, traceConformance } from '../../testing/feed-conformance.js'
import { traceReferenceCarryOver } from '../../testing/reference-carry-over.js'
import { traceReferencePrefetch } from '../../testing/reference-prefetch.js'
import { createRandomStream } from '../plan/random.js'

const BASE: ConformanceOptions = {
  sampleCount: 503,
  seed: 7,
  epochs: 3,
  nodeCount: 4,
  k: 8,
  arenaBytes: 1e9,
  prefixCount: 0,
  lengthOf: () => 1,
  threshold: 0.9,
}

for (const { name, change } of [
  { name: 'with room for everything', change: {} },
  { name: 'at exactly N(k−1) samples of space', change: { arenaBytes: 28 } },
  { name: 'in half of that space', change: { arenaBytes: 14 } },
  { name: 'with a space of one sample', change: { arenaBytes: 1 } },
  { name: 'with k = 1', change: { k: 1 } },
  { name: 'with one node', change: { nodeCount: 1, arenaBytes: 6 } },
  {
    name: 'with sizes that differ',
    change: { arenaBytes: 300, lengthOf: (s: number) => 3 + ((s * 7919) % 17) },
  },
]) {
  test(`the feed does step by step what seed 000 says ${name}`, () => {
    const options = { ...BASE, ...change }
    assert.deepEqual(traceConformance(options), traceReferencePrefetch(options))
  })
}

test('the feed does step by step what seed 000 says for 40 random settings', () => {
  const seed = 20260701
  const random = createRandomStream(seed, 0)
  for (let round = 0; round < 40; round++) {
    const scale = 1 + random.nextBelow(20)
    const options = {
      ...BASE,
      seed: random.nextUint32(),
      epochs: 2,
      sampleCount: 1 + random.nextBelow(300),
      nodeCount: 1 + random.nextBelow(9),
      k: 1 + random.nextBelow(20),
      arenaBytes: 1 + random.nextBelow(400),
      lengthOf: (sample: number) => 1 + ((sample * 2654435761) % scale),
      threshold: (1 + random.nextBelow(10)) / 10,
    }
    const note = `seed ${seed}, round ${round}: ${JSON.stringify(options)}`
    assert.deepEqual(traceConformance(options), traceReferencePrefetch(options), note)
  }
})

test('in an unbounded space the number of requests is the sum of ceil(n_M / k) over nodes and epochs', () => {
  const requests = traceConformance(BASE).filter((line) => line.startsWith('request')).length
  const perEpoch = [126, 126, 126, 125].reduce((sum, count) => sum + Math.ceil(count / 8), 0)
  assert.equal(requests, 3 * perEpoch)
})

for (const prefixCount of [1, 50, 251, 503]) {
  test(`the feed does step by step what seed 001 says with a prefix of ${prefixCount} of 503`, () => {
    const options = { ...BASE, k: 1, prefixCount }
    const trace = traceConformance(options)
    assert.deepEqual(trace, traceReferenceCarryOver(options))
    const sizes = trace.filter((line) => line.startsWith('cur')).map((line) => line.split(' ').map(Number))
    assert.ok(sizes.every(([, cur, , nex]) => cur! + nex! <= prefixCount))
    for (const epoch of [1, 2, 3]) {
      const [, cur, , nex] = sizes[503 * epoch - 1]!
      assert.deepEqual([cur, nex], [0, prefixCount], 'curList shrinks to nothing as nexList fills')
    }
    assert.equal(trace.filter((line) => line.startsWith('request')).length, 503 + 2 * (503 - prefixCount))
  })
}

test('both seeds together read n − P samples in about (n − P) / k requests', () => {
  const trace = traceConformance({ ...BASE, prefixCount: 100 })
  const requests = trace.filter((line) => line.startsWith('request'))
  const read = requests.reduce((sum, line) => sum + line.split(' ').length - 2, 0)
  assert.equal(read, 503 + 2 * 403)
  assert.ok(requests.length <= Math.ceil((503 + 2 * 403) / 8) + 3 * 4, `${requests.length} requests`)
})
