import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { formatGroupOrder, parseGroupOrder, refuseOrderOfOneMachine, shuffleGroups } from './group-order.js'

/** Makes groups of these lengths. */
function groupsOf(lengths: readonly number[], window: number) {
  let end = 0
  return { ends: Float64Array.from(lengths, (length) => (end += length)), window }
}

const lengthsOfGroups = fc.array(fc.integer({ min: 1, max: 30 }), { minLength: 1, maxLength: 30 })

test('an epoch visits every sample once, and has few groups open at a time', () => {
  fc.assert(
    fc.property(lengthsOfGroups, fc.integer({ min: 1, max: 40 }), fc.nat(1000), (lengths, window, seed) => {
      const { ends } = groupsOf(lengths, window)
      const samples = shuffleGroups({ ends, window }, { seed, epoch: seed % 3 })
      assert.deepEqual(
        [...samples].sort((a, b) => a - b),
        [...samples.keys()],
      )
      const places = lengths.map(() => [] as number[])
      for (const [place, sample] of samples.entries())
        places[ends.findIndex((end) => sample < end)]!.push(place)
      const spans = places.map((of) => ({ first: of[0]!, last: of.at(-1)! }))
      for (const place of samples.keys()) {
        const open = spans.filter(({ first, last }) => first <= place && place <= last).length
        assert.ok(open <= window, `${open} of ${window} are open at ${place}`)
      }
    }),
  )
})

test('an order is the same everywhere, another in each epoch, and spreads neighbours over the window', () => {
  const groups = groupsOf([3, 3, 3, 3], 2)
  const order = (epoch: number) => [...shuffleGroups(groups, { seed: 7, epoch })]
  assert.deepEqual(order(0), PINNED)
  assert.notDeepEqual(order(0), order(1))
  const [many, window] = [200, 8]
  const samples = shuffleGroups(groupsOf(Array(many).fill(100), window), { seed: 1, epoch: 0 })
  const groupAt = Array.from(samples, (sample) => Math.floor(sample / 100))
  const alike = groupAt.filter((group, place) => group === groupAt[place + 1]).length / samples.length
  assert.ok(Math.abs(alike - 1 / window) < 0.03, `${alike} of the neighbours are of one group`)
})

/** Resumed jobs rely on this order. */
const PINNED = [6, 7, 2, 1, 0, 9, 8, 10, 11, 5, 3, 4]

test('all groups in the window are one global shuffle', () => {
  const places = Array.from({ length: 300 }, (_, seed) =>
    shuffleGroups(groupsOf([5, 5], 9), { seed, epoch: 0 }).indexOf(0),
  )
  const mean = places.reduce((sum, place) => sum + place, 0) / places.length
  assert.ok(Math.abs(mean - 4.5) < 0.6, `sample 0 is at ${mean} of 0 to 9`)
})

test('orders through groups have names', () => {
  assert.equal(parseGroupOrder(formatGroupOrder(16)), 16)
  for (const other of ['shuffle', 'groups-', 'groups-0', 'groups-1.5', undefined])
    assert.equal(parseGroupOrder(other), undefined)
})

for (const { name, feed, isRefused } of [
  { name: 'groups that the feed chose, with ranks elsewhere', feed: {}, isRefused: true },
  { name: 'groups that were asked for', feed: { asked: 'groups-16' }, isRefused: false },
  { name: 'ranks that are all on this machine', feed: { localRanks: 4 }, isRefused: false },
  { name: 'a global order', feed: { order: 'shuffle' }, isRefused: false },
])
  test(`refuseOrderOfOneMachine ${isRefused ? 'refuses' : 'lets pass'} ${name}`, () => {
    const decide = () =>
      refuseOrderOfOneMachine({ order: 'groups-16', asked: undefined, world: 4, localRanks: 2, ...feed })
    if (isRefused) assert.throws(decide, { code: 'USAGE' })
    else decide()
  })
