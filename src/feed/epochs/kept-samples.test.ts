import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ArenaExtents, type Extent } from '../arena/arena-extents.js'
import { createRandomStream } from '../plan/random.js'
import { KeptSamples } from './kept-samples.js'

const START = { start: 0, isAtTop: true }

test('what is kept is found, taken and counted as by a Map, however many come and go', () => {
  const random = createRandomStream(1, 0)
  const extents = new ArenaExtents({ totalBytes: 2 ** 40 })
  const kept = new KeptSamples(extents)
  const model = new Map<number, Extent>()
  let bytes = 0
  for (let i = 0; i < 60_000; i++) {
    const sample = random.nextBelow(8000) * (i % 3 === 0 ? 1 : 4096)
    assert.equal(kept.has(sample), model.has(sample))
    // First it fills up, then it empties.
    if (!model.has(sample) && random.nextBelow(60_000) > i) {
      const extent = extents.add({ length: 64 + (sample % 640), sample }, START)
      model.set(sample, extent)
      kept.add(extent)
      bytes += 64 + (sample % 640)
    } else {
      const extent = kept.take(sample)
      assert.equal(extent, model.get(sample))
      if (extent === undefined) continue
      model.delete(sample)
      bytes -= extents.lengthOf(extent)
      extents.evict(extent)
    }
    assert.deepEqual([kept.size, kept.bytes], [model.size, bytes])
  }
  assert.deepEqual(new Set(kept), new Set(model.values()))
})

test('the number of an evicted extent is given again, and no other', () => {
  const extents = new ArenaExtents({ totalBytes: 2 ** 40 })
  const all = Array.from({ length: 3000 }, (_, sample) => extents.add({ length: 10, sample }, START))
  assert.equal(new Set(all).size, 3000)
  extents.evict(all[7]!)
  extents.evict(all[2999]!)
  const again = [1, 2, 3].map((sample) => extents.add({ length: 20, sample }, START))
  assert.deepEqual(new Set(again.slice(0, 2)), new Set([all[7], all[2999]]))
  assert.ok(!all.includes(again[2]!))
  assert.deepEqual([extents.lengthOf(all[2998]!), extents.sampleOf(all[2998]!)], [10, 2998])
})
