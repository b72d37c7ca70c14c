import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Candidate } from './candidates.js'
import { findLeastStallUs } from './least-stall.js'

/** 1 GB/s copies 1000 bytes in a microsecond; an event takes 100 µs. */
const PROFILE = { device: { d2hGBs: 1, h2dGBs: 1 } } as Parameters<typeof findLeastStallUs>[0]['profile']
const START_US = Array.from({ length: 12 }, (_, event) => 100 * event)
const KB = 1000

/** A storage that could be away in between two events. */
function idle(bytes: number, between: readonly [number, number] = [0, 4]): Candidate {
  const [outAfter, useAt] = between
  const us = bytes / 1000
  return { bytes, outAfter, useAt, outUs: us, inUs: us, slackUs: 0, lifetime: {} as Candidate['lifetime'] }
}

/** The bound, where the candidates leave `room` bytes on the device at each of `events`. */
function bound(candidates: readonly Candidate[], room: number, events: readonly number[] = [2]): number {
  const budgetBytes = 10_000 * KB
  const liveBytes = START_US.map((_, event) => {
    if (!events.includes(event)) return 0
    const away = candidates.filter(({ outAfter, useAt }) => outAfter < event && event < useAt)
    return budgetBytes - room + away.reduce((sum, { bytes }) => sum + bytes, 0)
  })
  const step = { timeline: { startUs: START_US } }
  return findLeastStallUs({ profile: PROFILE, step, liveBytes, budgetBytes, candidates })
}

test('a storage waits on its way out and on its way back for what the steps in between do not hide', () => {
  assert.equal(bound([idle(500 * KB)], 0), 800)
  assert.equal(bound([idle(100 * KB)], 0), 0)
  assert.equal(bound([{ ...idle(500 * KB), inUs: 0 }], 0), 400, 'nothing comes back')
  assert.equal(bound([{ ...idle(500 * KB), outUs: 0 }], 0), 400, 'the host has it')
})

test('a storage stays as a whole or not at all', () => {
  assert.equal(bound([idle(500 * KB)], 500 * KB - 1), 800)
  assert.equal(bound([idle(500 * KB), idle(300 * KB)], 300 * KB), 800, 'the smaller one stays')
  assert.equal(bound([idle(500 * KB), idle(300 * KB)], 500 * KB), 400, 'the larger one stays')
  assert.equal(bound([idle(500 * KB), idle(300 * KB), idle(200 * KB)], 500 * KB), 800, 'one or two of them')
})

test('up to 64 sums are exact; with more, the room counts as filled', () => {
  const powers = (count: number) => Array.from({ length: count }, (_, at) => idle(2 ** at * 10 * KB))
  // 7 sizes of 10 to 640 kB: of 1270 kB, 630 stay and 640 go, less 100 µs each way.
  assert.equal(bound(powers(7), 635 * KB), 2 * (640 - 100))
  // 8 sizes of 10 to 1280 kB: of 2550 kB, 1275 count as staying.
  assert.equal(bound(powers(8), 1275 * KB), 2 * (1275 - 100))
})

test('waits before different events add up, and of those before one event the longest counts', () => {
  const later = idle(500 * KB, [5, 9])
  assert.equal(bound([idle(500 * KB), later], 0, [2, 7]), 1600)
  assert.equal(bound([idle(500 * KB), idle(700 * KB, [1, 3])], 0), 2 * (1200 - 100))
})

const MANY = 400
const MIDDLE = 200
const FREE = { outUs: 0, inUs: 0 }

/** The bound of a step of 400 events, all over the budget: by `aside` and, in the middle, by `middle`. */
function boundOfMany(
  candidates: readonly Candidate[],
  over: { readonly aside: number; readonly middle: number },
) {
  const budgetBytes = 10_000 * KB
  const liveBytes = Array.from(
    { length: MANY },
    (_, event) => budgetBytes + (event === MIDDLE ? over.middle : over.aside),
  )
  const step = { timeline: { startUs: liveBytes.map((_, event) => 100 * event) } }
  return findLeastStallUs({ profile: PROFILE, step, liveBytes, budgetBytes, candidates })
}

test('of many events the one with the least room counts, though others are fuller', () => {
  const large = [
    { ...idle(9000 * KB, [-1, MIDDLE]), ...FREE },
    { ...idle(9000 * KB, [MIDDLE, MANY]), ...FREE },
  ]
  const needed = idle(500 * KB, [MIDDLE - 2, MIDDLE + 2])
  assert.equal(boundOfMany([...large, needed], { aside: 8000 * KB, middle: 500 * KB }), 800)
})

test('of many events the fullest counts, though others have less room', () => {
  const small = { ...idle(20 * KB, [-1, MANY]), ...FREE }
  const needed = [1, 2].map(() => idle(500 * KB, [MIDDLE - 2, MIDDLE + 2]))
  assert.equal(boundOfMany([small, ...needed], { aside: 10 * KB, middle: 520 * KB }), 800)
})
