import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { LiveCurve } from './live-curve.js'

test('LiveCurve agrees with a plain array', () => {
  const seed = Date.now() & 0x7fffffff
  process.stdout.write(`# seed ${seed}\n`)
  const change = fc.tuple(fc.nat(19), fc.nat(19), fc.integer({ min: -50, max: 50 }))
  fc.assert(
    fc.property(
      fc.array(fc.nat(100), { minLength: 1, maxLength: 20 }),
      fc.array(change, { maxLength: 20 }),
      (start, changes) => {
        const curve = new LiveCurve(start)
        const plain = start.slice()
        for (const [a, b, bytes] of changes) {
          const from = Math.min(a, b) % plain.length
          const to = Math.max(from, Math.max(a, b) % plain.length)
          curve.add(from, to, bytes)
          for (let event = from; event <= to; event++) plain[event]! += bytes
          const most = Math.max(...plain)
          assert.equal(curve.highest(), most)
          assert.equal(curve.firstHighest(), plain.indexOf(most))
          assert.equal(curve.highest(from, to), Math.max(...plain.slice(from, to + 1)))
          const above = plain.slice(from, to + 1).findLastIndex((value) => value > 60)
          assert.equal(curve.lastAbove(from, to, 60), above < 0 ? -1 : above + from)
        }
      },
    ),
    { seed, numRuns: 300 },
  )
})
