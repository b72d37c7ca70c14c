import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { StepBlock } from '../../model/step-blocks.js'
import { findNodeHoldUps, type NodeSteps } from './node-hold-ups.js'

function node(blocks: readonly StepBlock[], rank: number, { size = 1, gpus = 1 } = {}): NodeSteps {
  const causes = [
    { place: 'feed', culprit: `disk of rank ${rank}`, ms: 30 },
    { place: 'transform', culprit: `transform of rank ${rank}`, ms: 10 },
  ] as const
  return { gpus, steps: [{ size, blocks, causes: {} }], causes }
}

for (const { name, nodes, found } of [
  {
    name: 'waits for the ranks of another, once for each GPU and by what they waited for',
    nodes: [
      node(
        [
          [0, 1, 0, 140],
          [1, 1, 0, 140],
        ],
        0,
        { gpus: 4 },
      ),
      node(
        [
          [0, 1, 40, 100],
          [1, 1, 40, 100],
        ],
        1,
      ),
    ],
    found: { 'disk of rank 1': 240, 'transform of rank 1': 80 },
  },
  {
    name: 'waits in turn with another',
    nodes: [
      node(
        [
          [0, 1, 0, 140],
          [1, 1, 40, 100],
        ],
        0,
      ),
      node(
        [
          [0, 1, 40, 100],
          [1, 1, 0, 140],
        ],
        1,
      ),
    ],
    found: {
      'disk of rank 0': 30,
      'transform of rank 0': 10,
      'disk of rank 1': 30,
      'transform of rank 1': 10,
    },
  },
  {
    name: 'that trains apart from another waits for nobody',
    nodes: [
      node(
        [
          [0, 1, 0, 100],
          [1, 1, 0, 100],
        ],
        0,
      ),
      node(
        [
          [0, 1, 40, 100],
          [1, 1, 40, 100],
        ],
        1,
      ),
    ],
    found: {},
  },
  {
    name: 'waits no longer than its steps took above those of the quickest',
    nodes: [
      node([[0, 1, 0, 110]], 0),
      node(
        [
          [0, 1, 10, 100],
          [1, 1, 40, 100],
        ],
        1,
      ),
    ], // the second is not told yet
    found: { 'disk of rank 1': 8, 'transform of rank 1': 3 },
  },
  {
    name: 'is compared in the larger blocks of another',
    nodes: [
      node(
        [
          [2, 1, 0, 140],
          [3, 1, 0, 140],
        ],
        0,
      ),
      node([[1, 2, 80, 200]], 1, { size: 2 }),
    ],
    found: { 'disk of rank 1': 60, 'transform of rank 1': 20 },
  },
  { name: 'alone waits for nobody', nodes: [node([[0, 1, 40, 100]], 0)], found: {} },
] as const)
  test(`a node ${name}`, () => {
    const sums: Record<string, number> = {}
    for (const { culprit, gpuMs } of findNodeHoldUps(nodes).inSteps)
      sums[culprit] = Math.round(gpuMs) + (sums[culprit] ?? 0)
    assert.deepEqual(Object.fromEntries(Object.entries(sums).filter(([, ms]) => ms > 0)), found)
  })
