import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { ARENA_ALIGNMENT_BYTES, layOutArena } from './arena.js'

test('layOutArena never lets two slots overlap in time and space', () => {
  const seed = Date.now() & 0x7fffffff
  process.stdout.write(`# seed ${seed}\n`)
  const request = fc.record({
    bytes: fc.integer({ min: 1, max: 9000 }),
    from: fc.nat(30),
    length: fc.nat(20),
  })
  fc.assert(
    fc.property(fc.array(request, { maxLength: 40 }), (rows) => {
      const requests = rows.map(({ bytes, from, length }, id) => ({ id, bytes, from, to: from + length }))
      const { offsets, sizeBytes, liveBytes } = layOutArena(requests)
      assert.ok(sizeBytes >= liveBytes)
      for (const a of requests) {
        const low = offsets.get(a.id)!
        assert.equal(low % ARENA_ALIGNMENT_BYTES, 0)
        assert.ok(low + a.bytes <= sizeBytes)
        for (const b of requests) {
          if (b.id <= a.id || b.to < a.from || a.to < b.from) continue
          const other = offsets.get(b.id)!
          assert.ok(low + a.bytes <= other || other + b.bytes <= low, `${a.id} and ${b.id}`)
        }
      }
    }),
    { seed, numRuns: 200 },
  )
})

test('layOutArena gives one slot to maps that follow each other', () => {
  const rows = [0, 1, 2].map((id) => ({ id, bytes: 1024, from: 10 * id, to: 10 * id + 9 }))
  assert.deepEqual(layOutArena(rows), {
    sizeBytes: 1024,
    liveBytes: 1024,
    offsets: new Map([
      [0, 0],
      [1, 0],
      [2, 0],
    ]),
  })
})
