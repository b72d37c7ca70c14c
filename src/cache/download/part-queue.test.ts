import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Part, planParts } from '../../proof/plan-parts.js'
import { PartQueue } from './part-queue.js'
import type { PartedObject } from './parted-object.js'

const PARTS = planParts(2, 1)

/** An object of two parts, each of which can be taken once. */
function objectOf(id: number): PartedObject {
  const taken = new Set<Part>()
  const take = (part: Part) => {
    if (taken.has(part)) return undefined
    taken.add(part)
    return { ...part, part, isExtra: false }
  }
  return { entry: { id }, take } as unknown as PartedObject
}

/** The objects whose parts are handed out until none is available. */
function takeAll(queue: PartQueue): readonly number[] {
  const ids: number[] = []
  for (let next = queue.next(); next; next = queue.next()) ids.push(next.parted.entry.id)
  return ids
}

test('parts come in the order in which their objects were taken, whichever was opened first', () => {
  const queue = new PartQueue()
  for (const id of [7, 3, 5]) queue.expect(id)
  queue.add(objectOf(5), PARTS)
  assert.deepEqual(takeAll(queue), [], 'two that stand before it are being opened')
  queue.add(objectOf(7), PARTS)
  assert.deepEqual(takeAll(queue), [7, 7])
  queue.add(objectOf(3), PARTS)
  assert.deepEqual(takeAll(queue), [3, 3, 5, 5])
})

test('parts that somebody waits for wait for no other object', () => {
  const queue = new PartQueue()
  for (const id of [1, 2, 3]) queue.expect(id)
  queue.add(objectOf(2), PARTS)
  queue.hurry(3)
  queue.add(objectOf(3), PARTS)
  assert.deepEqual(takeAll(queue), [3, 3])
  queue.hurry(2)
  assert.deepEqual(takeAll(queue), [2, 2])
})

test('parts of several objects that readers wait for come in the order of the waits, whichever was opened first', () => {
  const queue = new PartQueue()
  for (const id of [1, 2, 3, 4]) queue.expect(id)
  for (const id of [4, 2]) queue.add(objectOf(id), PARTS)
  for (const id of [3, 2, 4, 3]) queue.hurry(id)
  for (const id of [3, 1]) queue.add(objectOf(id), PARTS)
  assert.deepEqual(takeAll(queue), [3, 3, 2, 2, 4, 4, 1, 1])
})

test('an object that came otherwise meanwhile holds up nobody', () => {
  const queue = new PartQueue()
  for (const id of [1, 2, 3]) queue.expect(id)
  queue.add(objectOf(2), PARTS)
  queue.forget(2) // all of it was fetched through wanted ranges
  queue.add(objectOf(3), PARTS)
  queue.forget(1)
  assert.deepEqual(takeAll(queue), [3, 3])
})

test('parts that are fetched again come in the turn of their object', () => {
  const queue = new PartQueue()
  for (const id of [1, 2]) queue.expect(id)
  queue.add(objectOf(1), PARTS)
  queue.add(objectOf(2), PARTS)
  assert.equal(queue.next()!.parted.entry.id, 1)
  assert.equal(queue.next()!.parted.entry.id, 1)
  queue.add(objectOf(1), PARTS)
  assert.deepEqual(takeAll(queue), [1, 1, 2, 2])
})
