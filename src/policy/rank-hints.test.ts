import assert from 'node:assert/strict'
import { test } from 'node:test'
import { exampleCopy } from '../testing/example-copies.js'
import { findBestNodes, rankHints } from './rank-hints.js'

test('nodes that have more of the datasets come first, and evicting copies do not count', () => {
  const copies = [
    exampleCopy('flowers', { node: 'gpu-3' }),
    exampleCopy('flowers', { node: 'gpu-1', state: 'staging' }),
    exampleCopy('flowers', { node: 'gpu-2' }),
    exampleCopy('birds', { node: 'gpu-2' }),
    exampleCopy('birds', { node: 'gpu-4', state: 'evicting' }),
    exampleCopy('fish', { node: 'gpu-5' }),
  ]
  assert.deepEqual(rankHints(['flowers', 'birds'], copies), [
    { node: 'gpu-2', ready: ['flowers', 'birds'], staging: [], readyShare: 2, stagingShare: 0 },
    { node: 'gpu-3', ready: ['flowers'], staging: [], readyShare: 1, stagingShare: 0 },
    { node: 'gpu-1', ready: [], staging: ['flowers'], readyShare: 0, stagingShare: 1 },
  ])
})

test('a stripe counts as the share of its dataset that it is', () => {
  const nodes = ['gpu-1', 'gpu-2', 'gpu-3', 'gpu-4']
  const stripe = (node: string, index: number) =>
    exampleCopy('flowers', { node, copyId: `${node}-${index}`, stripe: { index, nodes } })
  const copies = [
    stripe('gpu-1', 0),
    stripe('gpu-3', 1),
    stripe('gpu-3', 2),
    exampleCopy('flowers', { node: 'gpu-4', version: 'older' }),
    stripe('gpu-4', 3),
  ]
  assert.deepEqual(
    rankHints(['flowers'], copies).map(({ node, readyShare }) => [node, readyShare]),
    [
      ['gpu-4', 1],
      ['gpu-3', 0.5],
      ['gpu-1', 0.25],
    ],
  )
})

test('what is reserved or downloading counts for no more than is not there yet', () => {
  const nodes = ['gpu-1', 'gpu-2', 'gpu-3', 'gpu-4']
  const copies = [
    exampleCopy('flowers', { node: 'gpu-1', stripe: { index: 0, nodes } }),
    exampleCopy('flowers', { node: 'gpu-1', copyId: 'whole', version: null, state: 'reserved' }),
    exampleCopy('birds', { node: 'gpu-1', stripe: { index: 1, nodes }, state: 'staging' }),
  ]
  assert.deepEqual(rankHints(['flowers', 'birds'], copies), [
    { node: 'gpu-1', ready: ['flowers'], staging: ['birds'], readyShare: 0.25, stagingShare: 1 },
  ])
})

test('the best nodes are those that have most, and none where nobody has anything', () => {
  const nodes = (...copies: Parameters<typeof rankHints>[1]) => findBestNodes(rankHints(['flowers'], copies))
  const ready = (node: string) => exampleCopy('flowers', { node })
  assert.deepEqual(nodes(ready('a'), exampleCopy('flowers', { node: 'b', state: 'staging' }), ready('c')), [
    'a',
    'c',
  ])
  assert.deepEqual(nodes(exampleCopy('flowers', { state: 'staging' })), [])
})
