import assert from 'node:assert/strict'
import { test } from 'node:test'
import { explainDataset } from '../../cache/status/explain-dataset.js'
import { measureNodeUsage } from '../../cache/status/node-usage.js'
import type { StatusSummary } from '../../cache/status/summarize-status.js'
import { DISK, exampleCopy, NOW_MS } from '../../testing/example-copies.js'
import { formatExplanation } from './format-explanation.js'
import { countStatusLines, formatSummary } from './status-table.js'

const NODES = Array.from({ length: 200 }, (_, at) => `gpu-${String(at + 1).padStart(3, '0')}`)

function makeSummary(nodesOf: (dataset: number) => readonly string[]): StatusSummary {
  return {
    takenAtMs: NOW_MS,
    nodes: NODES.map((node) => ({
      node,
      cacheRoot: '/nvme/dsc',
      policy: {},
      disk: DISK,
      seenAtMs: NOW_MS,
      usage: measureNodeUsage({}, DISK, []),
    })),
    datasets: Array.from({ length: 500 }, (_, at) => ({
      dataset: `dataset-${at}`,
      ready: [...nodesOf(at)],
      unready: [],
      bytes: 1000,
      leases: 0,
      lastUsedAtMs: at,
    })),
    copies: 100_000,
    layouts: [],
    transfers: [],
    waits: [],
  }
}

test('200 nodes with 500 datasets are summed up in 200 lines of at most 200 characters', () => {
  const summary = makeSummary(() => NODES)
  const lines = formatSummary(summary, 200).split('\n')
  assert.ok(countStatusLines(summary) > 200)
  assert.ok(lines.length <= 200, String(lines.length))
  assert.match(lines.join('\n'), /\ndataset-499 +200 .* gpu-\[001-200\] +-\n/)
  assert.match(lines.join('\n'), /\nand 140 nodes more\n[\s\S]*\nand 410 datasets more\n/)
})

test('a list of nodes with many holes is cut, not wrapped', () => {
  const text = formatSummary(
    makeSummary((at) => NODES.filter((_, node) => (node * 7 + at) % 3 === 0)),
    200,
  )
  for (const line of text.split('\n')) assert.ok(line.length <= 200, line)
})

test('why tells of the newest copies first, and counts the others', () => {
  const copies = NODES.map((node, at) =>
    exampleCopy('flowers', {
      copyId: `c${at}`,
      node,
      readyAtMs: NOW_MS - at * 1000,
      lastTask: 'x'.repeat(300),
    }),
  )
  const text = formatExplanation(
    explainDataset('flowers', { copies, layouts: [], leases: [], events: [], outlooks: new Map() }),
    NOW_MS,
    undefined,
  )
  assert.match(
    text,
    /^flowers on gpu-001: [\s\S]*\nflowers on gpu-002: [\s\S]*\nand 190 older copies on gpu-\[011-200\];/,
  )
  assert.ok(text.split('\n').length < 100)
  for (const line of text.split('\n')) assert.ok(line.length <= 200, line)
})
