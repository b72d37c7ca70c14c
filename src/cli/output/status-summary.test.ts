import assert from 'node:assert/strict'
import { test } from 'node:test'
import { explainDataset } from '../../cache/status/explain-dataset.js'
import { measureNodeUsage } from '../../cache/status/node-usage.js'
import type { DatasetSummaries, StatusSummary } from '../../cache/status/summarize-status.js'
import { DISK, exampleCopy, NOW_MS } from '../../testing/example-copies.js'
import { formatExplanation } from './format-explanation.js'
import { countStatusLines, formatSummary, MAX_ROWS } from './status-table.js'

const NODES = Array.from({ length: 200 }, (_, at) => `gpu-${String(at + 1).padStart(3, '0')}`)

const SUMMARY: StatusSummary = {
  takenAtMs: NOW_MS,
  nodes: NODES.map((node) => ({
    node,
    cacheRoot: '/nvme/dsc',
    policy: {},
    disk: DISK,
    seenAtMs: NOW_MS,
    usage: measureNodeUsage({}, DISK, []),
  })),
  copies: 100_000,
  layouts: [],
  transfers: [],
  waits: [],
}

function makeDatasets(nodesOf: (dataset: number) => readonly string[]): DatasetSummaries {
  const newest = Array.from({ length: MAX_ROWS.datasets }, (_, at) => ({
    dataset: `dataset-${499 - at}`,
    ready: [...nodesOf(at)],
    unready: [],
    bytes: 1000,
    leases: 0,
    lastUsedAtMs: NOW_MS - at,
  }))
  return { newest, total: 500 }
}

test('200 nodes with 500 datasets are summed up in 200 lines of at most 200 characters', () => {
  const datasets = makeDatasets(() => NODES)
  const lines = formatSummary(SUMMARY, datasets, 200).split('\n')
  assert.ok(countStatusLines(SUMMARY, datasets.total) > 200)
  assert.ok(lines.length <= 200, String(lines.length))
  assert.match(lines.join('\n'), /\ndataset-499 +200 .* gpu-\[001-200\] +-\n/)
  assert.match(lines.join('\n'), /\nand 140 nodes more\n[\s\S]*\nand 410 datasets more\n/)
})

test('a list of nodes with many holes is cut, not wrapped', () => {
  const text = formatSummary(
    SUMMARY,
    makeDatasets((at) => NODES.filter((_, node) => (node * 7 + at) % 3 === 0)),
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
    explainDataset('flowers', { copies, layouts: [], leases: [], events: [], outlooks: [] }),
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
