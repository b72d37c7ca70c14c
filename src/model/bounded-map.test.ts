import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { BoundedMap } from './bounded-map.js'

test('a bounded map has what was set last, and no more than it may', () => {
  const operation = fc.record({
    kind: fc.constantFrom('set', 'delete', 'make'),
    key: fc.nat(9),
    value: fc.option(fc.nat(), { nil: undefined }),
  })
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 5 }), fc.array(operation), (maxEntries, operations) => {
      const map = new BoundedMap<number, number | undefined>(maxEntries)
      let naive: [number, number | undefined][] = []
      for (const { kind, key, value } of operations) {
        const known = naive.find(([each]) => each === key)?.[1]
        const without = naive.filter(([each]) => each !== key)
        if (kind === 'delete') {
          map.delete(key)
          naive = without
        } else if (kind === 'set') {
          map.set(key, value)
          naive = [...without, [key, value] as [number, number | undefined]].slice(-maxEntries)
        } else {
          assert.equal(
            map.getOrMake(key, () => value),
            known ?? value,
          )
          if (known === undefined && value !== undefined)
            naive = [...without, [key, value] as [number, number]].slice(-maxEntries)
        }
        assert.deepEqual([...map], naive)
      }
    }),
  )
})
