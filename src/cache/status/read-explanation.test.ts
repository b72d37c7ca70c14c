import assert from 'node:assert/strict'
import { test } from 'node:test'
import { exampleCopy, NOW_MS } from '../../testing/example-copies.js'
import { readExplanation } from './read-explanation.js'

/** A dataset on 40 nodes, the last of which got it last. */
const COPIES = Array.from({ length: 40 }, (_, at) =>
  exampleCopy('flowers', { copyId: `copy-${at}`, node: `gpu-${at}`, readyAtMs: NOW_MS + at }),
)

for (const { name, given, nodes } of [
  { name: 'on ten nodes', given: {}, nodes: COPIES.slice(-10).map(({ node }) => node) },
  { name: 'on one node', given: { node: 'gpu-3' }, nodes: ['gpu-3'] },
  {
    name: 'on all nodes, if asked',
    given: { outlooks: Number.POSITIVE_INFINITY },
    nodes: COPIES.map(({ node }) => node),
  },
])
  test(`why foresees evictions ${name}, of the newest copies first`, async () => {
    const read: string[] = []
    const explained = await readExplanation(
      {
        foreseeOrder: async ({ node }) => {
          read.push(node)
          const { copyId } = COPIES.find((copy) => copy.node === node)!
          return { first: [], ranks: [{ copyId, rank: 1, candidates: 1, reason: 'least recently used' }] }
        },
        listCopies: async () => COPIES,
        listEvents: async () => [],
        listLeases: async () => [],
      },
      'flowers',
      { nowMs: NOW_MS, ...given },
    )
    assert.deepEqual(read, nodes.toReversed())
    const ranked = explained.copies.filter(({ rank }) => rank !== undefined).map(({ copy }) => copy.node)
    assert.deepEqual(ranked, nodes)
  })
