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
    // It first fills up, then empties.
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
  assert.deepEqual(new Set(kept.takeNext(2 ** 20)), new Set(model.values()))
  assert.deepEqual([kept.size, kept.bytes], [0, 0])
})

/** Counts lookups of an extent's sample: one for each extent that a table looks at. */
class CountedExtents extends ArenaExtents {
  looks = 0

  override sampleOf(extent: Extent): number {
    this.looks++
    return super.sampleOf(extent)
  }
}

test('one more sample is never as much work as all that are there, not where the table has to grow either', () => {
  const extents = new CountedExtents({ totalBytes: 2 ** 40, expectedCount: 300_000 })
  const kept = new KeptSamples(extents)
  let most = 0
  for (let sample = 0; sample < 300_000; sample++) {
    const extent = extents.add({ length: 64, sample }, START)
    extents.looks = 0
    kept.add(extent)
    most = Math.max(most, extents.looks)
  }
  assert.ok(most < 500, `${most} extents were looked at to add one`)
  for (let sample = 0; sample < 300_000; sample++) assert.ok(kept.take(sample), `${sample}`)
})

test('what is left is taken by parts, between which samples are found, taken and added', () => {
  const random = createRandomStream(2, 0)
  const extents = new ArenaExtents({ totalBytes: 2 ** 40 })
  const kept = new KeptSamples(extents)
  const model = new Map<number, Extent>()
  for (let i = 0; i < 200; i++) {
    for (let more = 0; i < 150 && more < 300; more++) {
      const sample = random.nextBelow(2 ** 30)
      if (model.has(sample)) continue
      model.set(sample, extents.add({ length: 64, sample }, START))
      kept.add(model.get(sample)!)
    }
    for (const extent of kept.takeNext(i < 150 ? 400 : 100_000)) {
      assert.equal(model.get(extents.sampleOf(extent)), extent)
      model.delete(extents.sampleOf(extent))
    }
    const [some] = model.keys()
    if (some !== undefined && i % 2 === 0) {
      assert.equal(kept.take(some), model.get(some))
      model.delete(some)
    }
    assert.equal(kept.size, model.size)
    for (const sample of model.keys()) assert.ok(kept.has(sample))
  }
  assert.equal(model.size, 0)
})

test('looking for what is left of many is bounded, too', () => {
  const extents = new ArenaExtents({ totalBytes: 2 ** 40, expectedCount: 100_000 })
  const kept = new KeptSamples(extents)
  for (let sample = 0; sample < 100_000; sample++) kept.add(extents.add({ length: 64, sample }, START))
  for (let sample = 0; sample < 99_999; sample++) kept.take(sample)
  let calls = 0
  let found: Extent[] = []
  for (; found.length === 0; calls++) found = kept.takeNext(64)
  assert.equal(extents.sampleOf(found[0]!), 99_999)
  assert.ok(calls > 100, `${calls} looks at 64 places`)
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
