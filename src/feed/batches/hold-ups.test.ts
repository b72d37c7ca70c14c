import assert from 'node:assert/strict'
import { test } from 'node:test'
import { HoldUps } from './hold-ups.js'
import type { StepTimes } from './trainer-time.js'

const TIME = { gpus: 1, elapsedMs: 0, feedMs: 0, transformMs: 0, startMs: 0, loaderMs: 0 }

/** How long a rank waits for its batch in a step, and how long it then computes, in ms. */
type Plan = (step: number, rank: number) => { readonly waitMs: number; readonly workMs: number }

/** Computes the step times that ranks report if they exchange gradients after every `every` steps (0: never). */
function train(plan: Plan, { ranks = 2, steps = 100, every = 1 } = {}): StepTimes[] {
  const told = Array.from({ length: ranks }, () => ({
    first: 0,
    tookUs: [] as number[],
    waitedUs: [] as number[],
  }))
  const nowMs = told.map(() => 0)
  for (let step = 0; step < steps; step += 1) {
    const askedMs = [...nowMs]
    for (const [rank, { waitedUs }] of told.entries()) {
      const { waitMs, workMs } = plan(step, rank)
      waitedUs.push(1000 * waitMs)
      nowMs[rank]! += waitMs + workMs
    }
    if (every > 0 && step % every === every - 1) nowMs.fill(Math.max(...nowMs))
    for (const [rank, { tookUs }] of told.entries()) tookUs.push(1000 * (nowMs[rank]! - askedMs[rank]!))
  }
  return told
}

function findHoldUps(told: readonly StepTimes[], gpus = 1) {
  const holdUps = new HoldUps()
  for (const [rank, steps] of told.entries()) {
    const waitedMs = steps.waitedUs.reduce((sum, us) => sum + us, 0) / 1000
    holdUps.add({ ...TIME, rank, gpus, steps }, [
      ['transform', 0.75 * waitedMs],
      ['disk', 0.25 * waitedMs],
    ])
  }
  const sums: Record<string, number> = {}
  for (const { culprit, gpuMs } of holdUps.take(1).holdUps)
    sums[culprit] = Math.round(gpuMs) + (sums[culprit] ?? 0)
  return sums
}

const slowRank: Plan = (_step, rank) => ({ waitMs: rank === 1 ? 40 : 0, workMs: 10 })
const inTurn: Plan = (step, rank) => ({ waitMs: step % 2 === rank ? 40 : 0, workMs: 10 })

for (const { name, told, found } of [
  {
    name: 'a rank that always waits holds the others up, by that of which it waits',
    told: train(slowRank, { ranks: 3 }),
    found: { 'transform of rank 1': 6000, 'disk of rank 1': 2000 },
  },
  {
    name: 'ranks that wait in turn hold each other up',
    told: train(inTurn),
    found: {
      'transform of rank 0': 1500,
      'disk of rank 0': 500,
      'transform of rank 1': 1500,
      'disk of rank 1': 500,
    },
  },
  {
    name: 'ranks that exchange gradients now and then are held up then',
    told: train(slowRank, { every: 5 }),
    found: { 'transform of rank 1': 3000, 'disk of rank 1': 1000 },
  },
  { name: 'ranks that train apart hold nobody up', told: train(slowRank, { every: 0 }), found: {} },
  {
    name: 'a rank that computes longer, and waits for nothing, is no matter of a feed',
    told: train((_step, rank) => ({ waitMs: 0, workMs: rank === 1 ? 50 : 10 })),
    found: {},
  },
])
  test(name, () => {
    assert.deepEqual(findHoldUps(told), found)
  })

test('a hold-up counts once for every GPU that stands still', () => {
  const found = findHoldUps(train(slowRank), 4)
  assert.deepEqual(found, { 'transform of rank 1': 12_000, 'disk of rank 1': 4000 })
})

/** Steps `from` to `to`. */
function cut({ tookUs, waitedUs }: StepTimes, from: number, to: number): StepTimes {
  return { first: from, tookUs: tookUs.slice(from, to), waitedUs: waitedUs.slice(from, to) }
}

test('steps wait until all ranks have told of them', () => {
  const holdUps = new HoldUps()
  const told = train(slowRank)
  const tell = (rank: number, from: number, to: number) =>
    holdUps.add({ ...TIME, rank, steps: cut(told[rank]!, from, to) }, [
      ['transform', 40 * rank * (to - from)],
    ])
  const take = () => holdUps.take(1).holdUps.map(({ culprit, gpuMs }) => `${culprit}: ${Math.round(gpuMs)}`)
  tell(0, 0, 60)
  tell(1, 0, 50)
  assert.deepEqual(take(), ['transform of rank 1: 2000'])
  tell(0, 60, 70)
  tell(1, 50, 90)
  assert.deepEqual(take(), ['transform of rank 1: 800'])
})

test('a trainer that was started again is compared with the others from its first step on', () => {
  const holdUps = new HoldUps()
  const told = train(slowRank)
  for (const [from, to] of [
    [0, 30],
    [0, 10],
  ])
    for (const rank of [0, 1])
      holdUps.add({ ...TIME, rank, steps: cut(told[rank]!, from!, to!) }, [
        ['transform', 40 * rank * (to! - from!)],
      ])
  assert.equal(holdUps.take(1).holdUps[0]?.gpuMs, 400)
})

test('a rank that no longer tells anything is not waited for', () => {
  const holdUps = new HoldUps()
  const told = train(slowRank, { ranks: 3 })
  const tell = (rank: number, from: number, to: number) =>
    holdUps.add({ ...TIME, rank, steps: cut(told[rank]!, from, to) }, [['transform', rank === 1 ? 1 : 0]])
  for (const rank of [0, 1, 2]) tell(rank, 0, 10)
  const take = () => holdUps.take(1).holdUps.map(({ gpuMs }) => gpuMs)
  assert.deepEqual(take(), [400, 400])
  for (const rank of [0, 1]) tell(rank, 10, 20)
  assert.deepEqual(take(), [400])
})
