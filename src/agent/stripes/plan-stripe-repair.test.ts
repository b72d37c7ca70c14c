import assert from 'node:assert/strict'
import { test } from 'node:test'
import { findLayouts } from '../../cache/status/find-layouts.js'
import { exampleCopy } from '../../testing/example-copies.js'
import { planStripeRepair } from './plan-stripe-repair.js'

const NODES = ['a', 'b', 'c']

/** The layout a,b,c with only these stripes ready. */
function layoutOf(ready: readonly number[]) {
  const copies = ready.map((index) =>
    exampleCopy('flowers', { copyId: `${index}`, node: NODES[index]!, stripe: { index, nodes: NODES } }),
  )
  return findLayouts(copies)
}

const alive = (...nodes: readonly string[]) =>
  nodes.map((node, at) => ({ node, freeBytes: node === 'roomy' ? 1000 : at }))

for (const { name, ready, nodes, onto, to, indexes } of [
  {
    name: 'has nothing to do when all is there',
    ready: [0, 1, 2],
    nodes: alive('a'),
    onto: [],
    to: 'a b c',
    indexes: [],
  },
  {
    name: 'brings a stripe back to its own node',
    ready: [0, 2],
    nodes: alive('a', 'b', 'c', 'roomy'),
    onto: [],
    to: 'a b c',
    indexes: [1],
  },
  {
    name: 'chooses the live node with most room',
    ready: [0, 2],
    nodes: alive('a', 'c', 'd', 'roomy', 'e'),
    onto: [],
    to: 'a roomy c',
    indexes: [1],
  },
  {
    name: 'prefers the node that was named',
    ready: [0, 2],
    nodes: alive('a', 'b', 'c'),
    onto: ['d'],
    to: 'a d c',
    indexes: [1],
  },
  {
    name: 'uses named nodes in order, then its own rule',
    ready: [2],
    nodes: alive('b', 'c'),
    onto: ['d'],
    to: 'd b c',
    indexes: [0, 1],
  },
  {
    name: 'gives two stripes to two nodes',
    ready: [1],
    nodes: alive('b', 'd', 'e'),
    onto: [],
    to: 'e b d',
    indexes: [0, 2],
  },
  {
    name: 'may name the own node of another missing stripe',
    ready: [2],
    nodes: alive('a', 'c', 'd'),
    onto: ['a'],
    to: 'a d c',
    indexes: [0, 1],
  },
]) {
  test(`planStripeRepair ${name}`, () => {
    const plan = planStripeRepair('flowers', layoutOf(ready), { alive: nodes, onto })
    assert.equal(plan.nodes.join(' '), to)
    assert.deepEqual(plan.indexes, indexes)
  })
}

for (const { name, ready, nodes, onto, code } of [
  { name: 'no stripe is left', ready: [], nodes: alive('a'), onto: [], code: 'COPY_NOT_FOUND' },
  {
    name: 'nobody is left to take it',
    ready: [0, 2],
    nodes: alive('a', 'c'),
    onto: [],
    code: 'AGENT_UNREACHABLE',
  },
  {
    name: 'the named node holds another stripe',
    ready: [0, 2],
    nodes: alive('a', 'c'),
    onto: ['c'],
    code: 'USAGE',
  },
  { name: 'a node is named twice', ready: [0], nodes: alive('a'), onto: ['d', 'd'], code: 'USAGE' },
] as const) {
  test(`planStripeRepair refuses when ${name}`, () => {
    assert.throws(() => planStripeRepair('flowers', layoutOf(ready), { alive: nodes, onto }), { code })
  })
}
