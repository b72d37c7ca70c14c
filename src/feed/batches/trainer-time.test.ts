import assert from 'node:assert/strict'
import { test } from 'node:test'
import { TrainerTimes } from './trainer-time.js'

const TOLD = { rank: 0, gpus: 1, elapsedMs: 1000, feedMs: 0, transformMs: 0, startMs: 0, loaderMs: 0 }

for (const { name, told, culprits, waits } of [
  { name: 'counts no waits of a trainer that did not wait', told: {}, culprits: { disk: 400 }, waits: {} },
  {
    name: 'counts each wait once for every GPU',
    told: { gpus: 4, transformMs: 20, startMs: 5 },
    culprits: {},
    waits: { transform: 80, start: 20 },
  },
  {
    name: 'divides the wait among those for whom the feed waited, which read ahead and waited longer',
    told: { feedMs: 300 },
    culprits: { 'storage node 1': 400, disk: 200 },
    waits: { 'storage node 1': 200, disk: 100 },
  },
  {
    name: 'takes a wait without a culprit for the work of the feed',
    told: { feedMs: 300 },
    culprits: { store: 100 },
    waits: { store: 100, feed: 200 },
  },
])
  test(`a feed ${name}`, () => {
    const times = new TrainerTimes(() => 5000)
    times.add({ ...TOLD, ...told }, new Map(Object.entries(culprits)))
    const gpus = told.gpus ?? 1
    assert.deepEqual(times.take(), { sinceAgoMs: 1000, gpus, gpuMs: 1000 * gpus, waits })
    assert.equal(times.take(), undefined)
  })

test('a feed adds up its ranks, and counts the GPUs of one that told twice once', () => {
  let nowMs = 1000
  const times = new TrainerTimes(() => nowMs)
  times.add({ ...TOLD, transformMs: 10 }, new Map())
  nowMs = 2000
  times.add({ ...TOLD, transformMs: 10 }, new Map())
  times.add({ ...TOLD, rank: 1, gpus: 2, elapsedMs: 1500, transformMs: 10 }, new Map())
  assert.deepEqual(times.take(), { sinceAgoMs: 2000, gpus: 3, gpuMs: 5000, waits: { transform: 40 } })
})

test('a wait for workers is divided as the workers divide their own time, and later ones as before', () => {
  const times = new TrainerTimes(() => 5000)
  const tell = (loaderMs: number) => {
    times.add({ ...TOLD, loaderMs }, new Map())
    return times.take()?.waits
  }
  assert.deepEqual(tell(100), { transform: 100 })
  times.addMade({ rank: 0, madeMs: 100, waitedMs: 50 })
  times.addMade({ rank: 0, madeMs: 300, waitedMs: 250 })
  times.addMade({ rank: 1, madeMs: 300, waitedMs: 0 })
  for (let i = 0; i < 2; i++) assert.deepEqual(tell(400), { transform: 100, feed: 300 })
  times.addMade({ rank: 0, madeMs: 100, waitedMs: 0 })
  assert.deepEqual(tell(400), { transform: 400 })
})

test('a time that arrives late is no longer than the stretch that the feed notes, which a door would refuse', () => {
  const times = new TrainerTimes(() => 5000)
  for (const elapsedMs of [1000, 500]) times.add({ ...TOLD, elapsedMs }, new Map()) // the first was 500 ms on its way
  const { sinceAgoMs, gpus, gpuMs } = times.take()!
  assert.deepEqual({ sinceAgoMs, gpus, gpuMs }, { sinceAgoMs: 1500, gpus: 1, gpuMs: 1500 })
})

test('a feed keeps the steps of its ranks if others of the job have another feed', () => {
  for (const world of [1, 2]) {
    const times = new TrainerTimes(() => 5000)
    const steps = { first: 4, tookUs: [30_000, 50_000], waitedUs: [10_000, 20_000] }
    times.add({ ...TOLD, transformMs: 30, steps }, new Map(), world)
    const kept = {
      size: 1,
      blocks: [
        [4, 1, 10, 20],
        [5, 1, 20, 30],
      ],
      causes: { 'transform of rank 0': 30 },
    }
    assert.deepEqual(times.take()!.steps, world === 1 ? undefined : kept)
  }
})
