import assert from 'node:assert/strict'
import { test } from 'node:test'
import { formatNodeList } from './format-node-list.js'

const RACK = Array.from({ length: 200 }, (_, at) => `gpu-${String(at + 1).padStart(3, '0')}`)

for (const { nodes, expected } of [
  { nodes: [], expected: '' },
  { nodes: ['gpu-07'], expected: 'gpu-07' },
  { nodes: RACK, expected: 'gpu-[001-200]' },
  { nodes: ['gpu-3', 'gpu-1', 'gpu-2', 'gpu-7'], expected: 'gpu-[1-3,7]' },
  { nodes: ['gpu-9', 'gpu-10', 'gpu-07', 'gpu-7'], expected: 'gpu-[07,10],gpu-[7,9]' },
  { nodes: ['login', 'gpu-01', 'gpu-02', 'gpu-02'], expected: 'gpu-[01-02],login' },
  { nodes: ['a1.rack', 'a2.rack'], expected: 'a1.rack,a2.rack' },
]) {
  test(`${nodes.slice(0, 4).join(' ')}${nodes.length > 4 ? ' …' : ''} is ${JSON.stringify(expected)}`, () => {
    assert.equal(formatNodeList(nodes), expected)
  })
}
