import assert from 'node:assert/strict'
import { test } from 'node:test'
import { exampleCopy } from '../../testing/example-copies.js'
import { listHoldings } from './list-holdings.js'

test('holdings say for each dataset which nodes have it, and how much of it', () => {
  const copies = [
    exampleCopy('birds', { node: 'node-b' }),
    exampleCopy('flowers', { node: 'node-a', referenceCount: 2 }),
    exampleCopy('flowers', {
      node: 'node-b',
      state: 'staging',
      writtenBytes: 25,
      contentBytes: 50,
      chargedBytes: 100,
    }),
    exampleCopy('flowers', { node: 'node-c', state: 'reserved', writtenBytes: 0, chargedBytes: 0 }),
  ]
  assert.deepEqual(
    listHoldings(copies).map(({ dataset, nodes }) => [
      dataset,
      nodes.map(({ node, state, fillRatio, referenceCount }) => [node, state, fillRatio, referenceCount]),
    ]),
    [
      ['birds', [['node-b', 'ready', 1, 0]]],
      [
        'flowers',
        [
          ['node-a', 'ready', 1, 2],
          ['node-b', 'staging', 0.5, 0],
          ['node-c', 'reserved', 0, 0],
        ],
      ],
    ],
  )
})
