import assert from 'node:assert/strict'
import { test } from 'node:test'
import { planPassing, rankOwners, rankPeers } from './placement.js'

const NODES = Array.from({ length: 8 }, (_, index) => `gpu-${index}`)

test('the least loaded peer comes first, and equal ones spread over those who ask', () => {
  const peers = NODES.map((node, index) => ({ node, transfers: index === 5 ? 0 : 1 }))
  assert.equal(rankPeers(peers, 'new')[0]?.node, 'gpu-5')
  const idle = NODES.map((node) => ({ node, transfers: 0 }))
  const first = new Set(Array.from({ length: 100 }, (_, index) => rankPeers(idle, `new-${index}`)[0]?.node))
  assert.equal(first.size, 8)
})

test('every node owns about the same share of the parts', () => {
  const counts = new Map<string, number>()
  for (let index = 0; index < 8000; index++) {
    const owner = rankOwners(NODES, `train/${index % 800}.tar`, Math.floor(index / 800) * 16_777_216)[0]!
    counts.set(owner, (counts.get(owner) ?? 0) + 1)
  }
  for (const [node, count] of counts) assert.ok(count > 850 && count < 1150, `${node} owns ${count} of 8000`)
})

test('when a node is gone only its own parts change their owner', () => {
  for (let index = 0; index < 500; index++) {
    const [first, second] = rankOwners(NODES, `key-${index}`, 0)
    const without = rankOwners(
      NODES.filter((node) => node !== 'gpu-3'),
      `key-${index}`,
      0,
    )[0]
    assert.equal(without, first === 'gpu-3' ? second : first)
  }
})

test('all nodes of one object stand first, and early, in the orders of its parts about equally often', () => {
  const parts = Array.from({ length: 64 }, (_, index) => index * 4 * 1024 * 1024)
  const early = new Map(NODES.map((node) => [node, 0]))
  for (const offset of parts)
    for (const node of rankOwners(NODES, 'large.bin', offset).slice(0, 4))
      early.set(node, early.get(node)! + 1)
  for (const [node, count] of early)
    assert.ok(count >= 16 && count <= 48, `${node}: ${count} of ${parts.length}`)
})

test('a part is passed on by each node to two at most, along a way that grows with the logarithm of their number', () => {
  const givers = Array.from({ length: 4096 }, (_, position) => planPassing(position, 1))
  assert.deepEqual(givers[0], [], 'the first reads it from the store')
  assert.ok(Math.max(...givers.map(({ length }) => length)) <= 12)
  const takers = Map.groupBy(givers.slice(1), ([first]) => first)
  for (const [giver, those] of takers) assert.ok(those.length <= 2, `${giver} sends it to ${those.length}`)
})

test('where several have everything, each of them is asked first by two of those who begin together', () => {
  const firsts = Array.from({ length: 9 }, (_, index) => planPassing(3 + index, 3)[0])
  assert.deepEqual(firsts, [0, 0, 1, 1, 2, 2, 3, 3, 4])
})
