import assert from 'node:assert/strict'
import { test } from 'node:test'
import { rankOwners, rankPeers } from './placement.js'

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
