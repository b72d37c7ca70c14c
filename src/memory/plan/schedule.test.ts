import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Timeline } from '../step/timeline.js'
import type { Candidate } from './candidates.js'
import { type ScheduleLimits, scheduleMoves } from './schedule.js'

const EVENTS = 10

/** Ten events of 100 µs; those of `backward` begin a layer. */
function timeline(backward: readonly number[] = []): Timeline {
  const events = Array.from({ length: EVENTS }, (_, index) => ({
    index,
    durationUs: 100,
    phase: backward.includes(index) ? 'bwd_feat' : 'fwd',
  }))
  return { events } as unknown as Timeline
}

/** A storage of 50 bytes whose copies take 100 µs each, idle from event 1 to 7. */
function pick(
  changes: Partial<Omit<Candidate, 'lifetime'>> = {},
  lifetime: Partial<Candidate['lifetime']> = {},
): Candidate {
  const own = { storage: 1, kind: 'feature', to: 9, ...lifetime } as Candidate['lifetime']
  return { bytes: 50, outAfter: 0, useAt: 8, outUs: 100, inUs: 100, slackUs: 0, ...changes, lifetime: own }
}

/** 100 bytes are live, except at `fullAt`, where it is 150; the budget is 100. */
function limits(fullAt: readonly number[], changes: Partial<ScheduleLimits> = {}): ScheduleLimits {
  const liveBytes = Array.from({ length: EVENTS }, (_, event) => (fullAt.includes(event) ? 150 : 100))
  return { liveBytes, budgetBytes: 100, aimBytes: 100, ...changes }
}

for (const { name, picks, at = [], limit = limits([3]), expected } of [
  { name: 'moves nothing where everything fits', picks: [pick()], limit: limits([]), expected: [] },
  // In time: at 800 − 1.2 × 100 µs, in event 6.
  { name: 'frees at the full event, and brings back in time', picks: [pick()], expected: [[3, 6]] },
  {
    name: 'brings back later while there is no room',
    picks: [pick()],
    limit: limits([3, 6]),
    expected: [[3, 7]],
  },
  // The copy out ends at 500 µs, 200 after event 3 would begin: all later events begin as much later.
  {
    name: 'lets a full event wait for the copy out',
    picks: [pick({ outUs: 400, inUs: 300 })],
    expected: [[3, 4]],
  },
  {
    name: 'frees what is out already as soon as the aim is exceeded, without a wait',
    picks: [pick()],
    limit: limits([], { aimBytes: 99 }),
    expected: [[2, 6]],
  },
  {
    name: 'frees at once what needs no copy out',
    picks: [pick({ outUs: 0 })],
    limit: limits([], { aimBytes: 99 }),
    expected: [[1, 6]],
  },
  {
    name: 'has away from the start what is on the host',
    picks: [pick({ outAfter: -1 })],
    expected: [[0, 6]],
  },
  { name: 'leaves away what the step needs no more', picks: [pick({ useAt: 10 })], expected: [[3, 10]] },
  { name: 'keeps what is needed before memory runs short', picks: [pick({ useAt: 3 })], expected: [] },
  {
    name: 'brings back earlier what came late in a run',
    picks: [pick()],
    limit: limits([3], { latenessUs: new Map([[1, 100]]) }),
    expected: [[3, 5]],
  },
  {
    name: 'copies one after the other, first needed first',
    picks: [pick({ useAt: 9 }, { storage: 2 }), pick()],
    limit: { ...limits([]), liveBytes: [100, 100, 100, 200, 100, 100, 100, 50, 50, 50], budgetBytes: 100 },
    expected: [
      [3, 6],
      [3, 7],
    ],
  },
  {
    name: 'keeps to the cap of what is back early',
    picks: [pick(), pick({ useAt: 9 }, { storage: 2 })],
    limit: {
      ...limits([]),
      liveBytes: [100, 100, 100, 200, 100, 100, 100, 50, 50, 50],
      reloadCapBytes: 60,
    },
    expected: [
      [3, 6],
      [3, 9],
    ],
  },
  {
    name: 'brings parameters back where a layer begins, which is the event after',
    picks: [pick({}, { kind: 'param' })],
    at: [6],
    expected: [[3, 7]],
  },
  { name: 'brings features back within a layer', picks: [pick()], at: [6], expected: [[3, 6]] },
]) {
  test(`a schedule ${name}`, () => {
    const moves = scheduleMoves(timeline(at), picks, limit)
    assert.deepEqual(
      moves.map(({ freeBy, inAt }) => [freeBy, inAt]),
      expected,
    )
  })
}
