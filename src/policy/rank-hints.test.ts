import assert from 'node:assert/strict'
import { test } from 'node:test'
import { exampleCopy } from '../testing/example-copies.js'
import { rankHints } from './rank-hints.js'

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
    { node: 'gpu-2', ready: ['flowers', 'birds'], staging: [] },
    { node: 'gpu-3', ready: ['flowers'], staging: [] },
    { node: 'gpu-1', ready: [], staging: ['flowers'] },
  ])
})
