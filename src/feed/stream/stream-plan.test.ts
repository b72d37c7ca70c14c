import assert from 'node:assert/strict'
import { test } from 'node:test'
import { makePrefix } from '../../testing/make-prefix.js'
import { ArenaSpace } from '../arena/arena-space.js'
import { CarryOver } from '../epochs/carry-over.js'
import { RankItems } from '../epochs/rank-items.js'
import { planOrder } from '../plan/order.js'
import { planRankSequence } from '../plan/rank-sequence.js'
import type { PrefetchSettings } from './request-plan.js'
import type { SampleRequest } from './slot.js'
import { StreamPlan } from './stream-plan.js'

const SETTINGS: PrefetchSettings = {
  k: 4,
  maxRequestBytes: 1000,
  lowWater: 8,
  inFlightPerNode: 2,
  isPastEnd: true,
  isStaggered: false,
  isBatched: false,
}

/** A plan over 100 samples of 10 bytes in their natural order, in an arena of `totalBytes`. */
function makePlan(totalBytes: number, settings: Partial<PrefetchSettings> = {}, visitsEach = 1) {
  const arena = new ArenaSpace({ totalBytes, eviction: 'lazy', move: () => {} })
  arena.setLimits({ bottomBytes: totalBytes, topBytes: 0 })
  const carry = new CarryOver(arena.extents)
  const sequence = planRankSequence({
    sampleCount: 100,
    batchSize: 10,
    world: 1,
    rank: 0,
    replicate: 1,
    last: 'drop',
  })
  const find = (epoch: number) => {
    const order = planOrder({ sampleCount: 100, seed: 0, epoch, kind: 'sequential' })
    return { ...order, sampleAt: (position: number) => order.sampleAt(position) % (100 / visitsEach) }
  }
  const items = new RankItems({
    sequence,
    rule: 'fixed',
    placed: { layout: 'full', nodeCount: 1 },
    orders: { find, get: async (epoch) => find(epoch) },
    isEachOnce: visitsEach === 1,
  })
  const room = {
    space: arena,
    extentBytesOf: () => 10,
    prefetchRoomBytes: () => Number.POSITIVE_INFINITY,
    carryBytes: Number.POSITIVE_INFINITY,
  }
  const plan = new StreamPlan({ items, room, carry, settings: { ...SETTINGS, ...settings } })
  const answer = (request: SampleRequest | undefined): number[] => {
    if (!request) return []
    for (const slot of request.slots) plan.settle(slot)
    plan.finishRequest(request)
    return request.slots.map((slot) => slot.sample)
  }
  return { plan, answer, arena, carry, room }
}

test('low-water requests follow the list until enough is ready', () => {
  const { plan, answer } = makePlan(1000)
  const asked = [1, 2, 3, 4].map(() => answer(plan.nextPrefetch()))
  assert.deepEqual(asked, [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11], []])
})

test('no more than two low-water requests are on their way to a node, but a miss goes at once', () => {
  const { plan } = makePlan(1000)
  assert.ok(plan.nextPrefetch() && plan.nextPrefetch())
  assert.equal(plan.nextPrefetch(), undefined)
  assert.deepEqual(
    plan.want(30).request?.slots.map((slot) => slot.sample),
    [30, 8, 9, 10],
  )
})

test('a request is shortened to the room there is, never put off', () => {
  const { plan, answer } = makePlan(60)
  assert.deepEqual(answer(plan.nextPrefetch()), [0, 1, 2, 3])
  assert.deepEqual(answer(plan.nextPrefetch()), [4, 5])
})

test('a miss without room is blocked until the sample needed last gives way, which is then read again', () => {
  const { plan, answer } = makePlan(40)
  answer(plan.nextPrefetch())
  assert.equal(plan.want(50).outcome, 'blocked')
  assert.equal(plan.dropFarthest(), true)
  const want = plan.want(50)
  assert.equal(want.outcome, 'miss')
  assert.deepEqual(answer(want.request), [50])
  assert.equal(plan.want(3).outcome, 'blocked')
  plan.lease(want.slot)
  plan.release(want.slot)
  assert.deepEqual(answer(plan.want(3).request), [3])
})

test('a sample that an epoch of a mix visits twice, and that was kept once, is asked for once', () => {
  const { plan, answer, arena, carry } = makePlan(1000, { k: 10, lowWater: 90 }, 2)
  carry.setPrefix(0, makePrefix(100, [3]))
  carry.insert(0, arena.reserveTop({ length: 10, sample: 3 })!)
  const asked: number[] = []
  for (let ids = answer(plan.nextPrefetch()); ids.length > 0; ids = answer(plan.nextPrefetch()))
    asked.push(...ids)
  assert.equal(asked.filter((sample) => sample === 3).length, 1)
  assert.equal(plan.want(3).outcome, 'kept')
  assert.equal(plan.want(53).outcome, 'hit')
})

/**
 * Makes a plan whose client holds samples 0 to 2, which are to be kept, while lists run past them in the next epoch.
 */
function holdPromised() {
  const made = makePlan(3000, { k: 10, lowWater: 100 })
  const { plan, answer, carry } = made
  carry.setPrefix(1, makePrefix(100, [0, 1, 2]))
  carry.setPrefix(2, makePrefix(100, []))
  answer(plan.nextPrefetch())
  const held = [0, 1, 2].map((serial) => {
    const { slot } = plan.want(serial)
    plan.lease(slot)
    return slot
  })
  const asked: number[] = []
  for (let ids = answer(plan.nextPrefetch()); ids.length > 0; ids = answer(plan.nextPrefetch()))
    asked.push(...ids)
  assert.equal(asked[asked.indexOf(99) + 1], 3) // promised samples are skipped
  return { ...made, held }
}

test('what Cache_next has no room for after all is asked for before what follows it in the next epoch', () => {
  const { plan, answer, held, room } = holdPromised()
  room.carryBytes = 10
  for (const slot of held) {
    const copy = plan.release(slot)
    if (copy) plan.settleCopy(copy)
  }
  for (let serial = 3; serial < 40; serial++) {
    const { slot } = plan.want(serial)
    plan.lease(slot)
    plan.release(slot)
  }
  assert.deepEqual(answer(plan.nextPrefetch()).slice(0, 2), [1, 2])
  assert.equal(plan.counts.carried, 1)
})

test('what could not be copied into Cache_next is asked for, and what was kept is not', () => {
  const { plan, answer, held } = holdPromised()
  const copies = held.map((slot) => plan.release(slot)!)
  plan.settleCopy(copies[0]!)
  plan.failCopy(copies[1]!)
  plan.settleCopy(copies[2]!)
  for (let serial = 3; serial < 40; serial++) {
    const { slot } = plan.want(serial)
    plan.lease(slot)
    plan.release(slot)
  }
  const [first, second] = answer(plan.nextPrefetch())
  assert.equal(first, 1)
  assert.ok(second! > 3)
})

test('after a step forward the list goes on from there', () => {
  const { plan, answer } = makePlan(40)
  answer(plan.nextPrefetch())
  assert.equal(plan.nextPrefetch(), undefined) // no room: 4 stays on the list
  plan.reposition(40)
  assert.deepEqual(answer(plan.nextPrefetch()), [40, 41, 42, 43])
})

test('after a step back everything is read again from there', () => {
  const { plan, answer } = makePlan(1000)
  const want = plan.want(20)
  answer(want.request)
  plan.lease(want.slot)
  plan.reposition(10)
  plan.release(want.slot)
  assert.deepEqual(answer(plan.nextPrefetch()), [10, 11, 12, 13])
})

test('bytes that arrive for a sample nobody wants any more are given back', () => {
  const { plan, answer } = makePlan(40)
  const request = plan.nextPrefetch()
  plan.reposition(50)
  assert.equal(plan.nextPrefetch(), undefined) // the arena is full of samples in flight
  answer(request)
  assert.deepEqual(answer(plan.nextPrefetch()), [50, 51, 52, 53])
})

test('requests end with batches, whose samples lie side by side although the room for them is in holes', () => {
  const { plan, answer, arena } = makePlan(600, { isBatched: true, k: 25, lowWater: 30 })
  const placesOf = (request: SampleRequest) => request.slots.map(({ extent }) => arena.offsetOf(extent!))
  const request = plan.nextPrefetch()!
  assert.deepEqual(
    request.slots.map(({ sample }) => sample),
    Array.from({ length: 20 }, (_, i) => i),
    'of 25 samples two batches of 10 go',
  )
  answer(request)
  answer(plan.nextPrefetch())
  for (let batch = 0; batch < 9; batch++) {
    const taken = Array.from({ length: 10 }, (_, i) => plan.want(10 * batch + i).slot)
    const first = arena.offsetOf(taken[0]!.extent!)
    assert.deepEqual(
      taken.map(({ extent }) => arena.offsetOf(extent!)),
      Array.from({ length: 10 }, (_, i) => first + 10 * i),
      `batch ${batch}`,
    )
    for (const slot of taken) plan.lease(slot)
    for (const slot of taken) plan.release(slot)
    for (let next = plan.nextPrefetch(); next; next = plan.nextPrefetch()) {
      assert.ok(placesOf(next).every((at) => at < 600))
      answer(next)
    }
  }
})
