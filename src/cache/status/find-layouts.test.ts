import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { CopyUse } from '../../model/copy.js'
import { exampleCopy, NOW_MS } from '../../testing/example-copies.js'
import { findLayouts, formatLayout } from './find-layouts.js'

const NODES = ['a', 'b', 'c']

function stripe(index: number, changes: Partial<CopyUse> = {}, nodes: readonly string[] = NODES): CopyUse {
  return exampleCopy('flowers', {
    copyId: `stripe-${index}-${nodes.join('')}`,
    node: nodes[index]!,
    stripe: { index, nodes },
    ...changes,
  })
}

for (const { name, copies, expected } of [
  { name: 'finds none among whole copies', copies: [exampleCopy('flowers')], expected: [] },
  {
    name: 'is complete when every stripe is ready',
    copies: [stripe(0), stripe(1), stripe(2)],
    expected: ['abc: 3 of 3 stripes'],
  },
  {
    name: 'tells what is missing by the stripes that are left',
    copies: [stripe(0), stripe(2)],
    expected: ['abc: 2 of 3 stripes, 2/3 on b is missing'],
  },
  {
    name: 'counts a whole copy on the node as its stripe',
    copies: [stripe(0), exampleCopy('flowers', { node: 'b' }), stripe(2)],
    expected: ['abc: 3 of 3 stripes'],
  },
  {
    name: 'does not count a whole copy of another version',
    copies: [stripe(0), exampleCopy('flowers', { node: 'b', version: 'v2' }), stripe(2)],
    expected: ['abc: 2 of 3 stripes, 2/3 on b is missing'],
  },
  {
    name: 'is told by a whole copy when no stripe is left',
    copies: [
      exampleCopy('flowers', { node: 'a', layouts: [NODES] }),
      exampleCopy('flowers', { node: 'b', layouts: [NODES] }),
    ],
    expected: ['abc: 2 of 3 stripes, 3/3 on c is missing'],
  },
  {
    name: 'is told once by a whole copy and by a stripe',
    copies: [exampleCopy('flowers', { node: 'a', layouts: [NODES] }), stripe(2)],
    expected: ['abc: 2 of 3 stripes, 2/3 on b is missing'],
  },
  {
    name: 'shows what is being staged',
    copies: [stripe(0), stripe(1, { state: 'staging' }), stripe(2)],
    expected: ['abc: 2 of 3 stripes, 2/3 on b is being staged'],
  },
  {
    name: 'leaves out stripes that are being evicted',
    copies: [stripe(0), stripe(1, { state: 'evicting' }), stripe(2)],
    expected: ['abc: 2 of 3 stripes, 2/3 on b is missing'],
  },
  {
    name: 'leaves out a layout of which only an abandoned staging is left',
    copies: [stripe(1, { state: 'staging' })],
    expected: [],
  },
  {
    name: 'keeps other node lists and other versions apart, the latest first',
    copies: [
      stripe(0, {}, ['a']),
      stripe(0, { createdAtMs: NOW_MS }, ['b']),
      stripe(0, { copyId: 'old', version: 'v0', createdAtMs: 0 }, ['a']),
    ],
    expected: ['b: 1 of 1 stripe', 'a: 1 of 1 stripe', 'a: 1 of 1 stripe'],
  },
] as const) {
  test(`findLayouts ${name}`, () => {
    const layouts = findLayouts(copies)
    assert.deepEqual(
      layouts.map((layout) => `${layout.nodes.join('')}: ${formatLayout(layout)}`),
      expected,
    )
    for (const layout of layouts) {
      assert.equal(
        layout.isComplete,
        layout.stripes.every(({ state }) => state === 'ready'),
      )
    }
  })
}
