import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Lane, type LaneTask, SORT_AGAIN_MS, TaskLanes } from './task-lanes.js'

const ALL: readonly Lane[] = ['direct', 'awaited']
const task = (id: number): LaneTask => ({
  id,
  key: `${id}`,
  partOffset: 0,
  range: { offset: 0, length: 10 },
  bytes: 10,
})

/** Lanes for the objects `ids`; those in `awaited` come from another node. */
function makeLanes(ids: readonly number[], awaited: readonly number[]) {
  const taken = new Set<number>()
  const claim = (id: number) => !taken.has(id) && taken.add(id).size > 0
  const left = ids.map((id) => ({ ...task(id), claim: () => claim(id) }))
  const wanted: LaneTask[] = []
  const ordered: LaneTask[] = []
  let nowMs = 0
  const lanes = new TaskLanes({
    take: { wanted: () => wanted.shift(), ordered: () => ordered.shift(), listed: () => left.shift() },
    isAwaited: ({ id }) => awaited.includes(id),
    nowMs: () => nowMs,
  })
  const want = (id: number) => {
    const at = left.findIndex((next) => next.id === id)
    if (at >= 0) wanted.push(...left.splice(at, 1))
    lanes.hurry(id)
  }
  const order = (...needs: readonly number[]) => ordered.push(...needs.filter(claim).map(task))
  const pass = (ms: number) => {
    nowMs += ms
  }
  return {
    want,
    order,
    pass,
    next: (free: readonly Lane[]) => lanes.next({ wanted: free, ordered: free, listed: free })?.task.id,
  }
}

test('objects are taken in their order while both lanes have room', () => {
  const { next } = makeLanes([1, 2, 3], [2])
  assert.deepEqual([next(ALL), next(ALL), next(ALL), next(ALL)], [1, 2, 3, undefined])
})

test('what can be had at once does not stand behind what another node has yet to fetch', () => {
  const { next } = makeLanes([1, 2, 3, 4], [1, 2, 3])
  assert.equal(next(['direct']), 4)
  assert.equal(next(['direct']), undefined)
  assert.deepEqual([next(ALL), next(ALL), next(ALL)], [1, 2, 3], 'the others keep their order')
})

test('an object that somebody waits for comes first, also where it stands in a full lane', () => {
  const { next, want } = makeLanes([1, 2, 3, 4, 5], [1, 2, 3])
  assert.equal(next(['direct']), 4)
  want(3)
  want(5)
  assert.deepEqual([next(ALL), next(ALL), next(ALL)], [5, 3, 1])
})

test('what a reader will use comes before what was only listed, also where that stands in a full lane, and once', () => {
  const { next, order } = makeLanes([1, 2, 3, 4, 5], [1, 2, 3])
  assert.equal(next(['direct']), 4)
  order(3, 5, 2)
  assert.deepEqual([next(['direct']), next(ALL), next(ALL), next(ALL), next(ALL)], [5, 3, 2, 1, undefined])
})

test('a full lane keeps a bounded number of tasks, and what somebody waits for finds its way past them', () => {
  const ids = Array.from({ length: 5000 }, (_, index) => index + 1)
  const { next, want } = makeLanes(ids, ids.slice(0, 4999))
  assert.equal(next(['direct']), undefined, 'the one object of the other lane is far behind')
  want(5000)
  assert.equal(next(['direct']), 5000)
})

test('an object that another node has begun to fetch meanwhile leaves the lane in which it stands', () => {
  const awaited = [1]
  const { next } = makeLanes([1, 2, 3, 4], awaited)
  assert.equal(next(['awaited']), 1)
  assert.equal(next(['awaited']), undefined, 'all others stand in the other lane')
  awaited.push(2, 3)
  assert.equal(next(['direct']), 4)
  assert.deepEqual([next(['awaited']), next(['awaited'])], [2, 3])
})

test('an object that nobody fetches any more is found, whichever lanes have room', () => {
  const awaited = [1, 2]
  const { next } = makeLanes([1, 2], awaited)
  assert.equal(next(['direct']), undefined)
  awaited.splice(0)
  assert.deepEqual([next(ALL), next(ALL), next(ALL)], [1, 2, undefined])
})

test('an object that waited for a node which gave up is fetched here, though its lane is full', () => {
  const awaited = [1, 2, 3, 4]
  const { next, want, pass } = makeLanes([1, 2, 3, 4], awaited)
  assert.equal(next(['awaited']), 1)
  want(4)
  assert.equal(next(['direct']), undefined)
  awaited.splice(0)
  pass(SORT_AGAIN_MS)
  assert.deepEqual([next(['direct']), next(['direct']), next(['direct'])], [4, 2, 3])
})

test('what is known late comes before what readers have waited for less long, and overtakes nothing else', () => {
  const arriving = [{ ...task(5), turn: 5 }, { ...task(1), turn: 1 }, task(9), { ...task(7), turn: 7 }]
  const later = [
    { ...task(6), turn: 6 },
    { ...task(2), turn: 2 },
  ]
  const wanted: LaneTask[] = [...arriving]
  const none = () => undefined
  const lanes = new TaskLanes({
    take: { wanted: () => wanted.shift(), ordered: none, listed: none },
    isAwaited: () => false,
    nowMs: () => 0,
  })
  const next = (free: readonly Lane[]) => lanes.next({ wanted: free, ordered: free, listed: free })?.task.id
  assert.equal(next([]), undefined)
  wanted.push(...later)
  assert.deepEqual([next(ALL), next(ALL), next(ALL), next(ALL), next(ALL), next(ALL)], [1, 5, 9, 2, 6, 7])
})

test('parts in a full lane that somebody waits for keep their order, and so do those that come again', () => {
  const partOf = (id: number, partOffset: number) => ({ ...task(id), partOffset })
  const ordered: LaneTask[] = [partOf(1, 0), task(2), partOf(1, 10), partOf(1, 20), task(3)]
  const none = () => undefined
  const lanes = new TaskLanes({
    take: { wanted: none, ordered: () => ordered.shift(), listed: none },
    isAwaited: () => false,
    nowMs: () => 0,
  })
  const next = (free: readonly Lane[]) => lanes.next({ wanted: free, ordered: free, listed: free })?.task
  const nextTwo = () => [next(ALL), next(ALL)].map((taken) => [taken?.id, taken?.partOffset])
  assert.equal(next(['awaited']), undefined)
  lanes.hurry(2)
  lanes.hurry(1)
  lanes.hurry(1)
  assert.deepEqual([...nextTwo(), next(ALL)?.partOffset, next(ALL)?.partOffset], [[2, 0], [1, 0], 10, 20])
  ordered.push(partOf(1, 0), partOf(1, 10))
  assert.equal(next(['awaited']), undefined)
  lanes.hurry(1)
  assert.deepEqual([...nextTwo(), next(ALL)?.id], [[1, 0], [1, 10], 3])
})
