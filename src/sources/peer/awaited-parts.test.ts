import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Awaited, AwaitedParts } from './awaited-parts.js'
import type { Peer } from './peer.js'

test('parts that were asked for are hurried once, those of a range alone, and none that has come', () => {
  const hurried: number[] = []
  const peer = { hurry: ({ offset }: { readonly offset: number }) => hurried.push(offset) } as unknown as Peer
  const parts = new AwaitedParts()
  const asked = [0, 10, 20].map((offset): Awaited => {
    return { path: '/a', part: { offset, length: 10 }, urgency: 'listed', heldBy: peer }
  })
  for (const awaited of asked) parts.note('a', awaited)
  parts.hurry('b')
  parts.hurry('a', { offset: 12, length: 5 })
  assert.deepEqual(hurried, [10])
  parts.forget('a', asked[0]!)
  parts.hurry('a')
  assert.deepEqual(hurried, [10, 20])
  assert.equal(asked[1]!.urgency, 'wanted')
})

test('a part that nobody holds a question for is wanted from the next question on', () => {
  const parts = new AwaitedParts()
  const awaited: Awaited = { path: '/a', part: { offset: 0, length: 10 }, urgency: 'ordered' }
  parts.note('a', awaited)
  parts.hurry('a', { offset: 10, length: 5 })
  assert.equal(awaited.urgency, 'ordered', 'another part is')
  parts.hurry('a', { offset: 9, length: 5 })
  assert.equal(awaited.urgency, 'wanted')
})
