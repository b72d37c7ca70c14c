// Counts what the feed's plan does for a grid of k, N and α, beside what theory says.
import { traceConformance } from '../../../dist/testing/feed-conformance.js'
import { table } from '../harness/tables.mjs'

const SAMPLES = 12_000
const EPOCHS = 3
/** Nodes, k, α and the prefetch space as a part of N(k − 1) samples. */
const GRID = [
  ...[
    [1, 1, 0, 1],
    [1, 32, 0, 1],
    [4, 8, 0, 1],
    [16, 32, 0, 1],
    [16, 32, 0, 0.5],
    [16, 32, 0, 0.2],
  ],
  ...[
    [4, 1, 0.1, 1],
    [4, 1, 0.5, 1],
    [16, 32, 0.1, 1],
    [16, 32, 0.4, 1],
  ],
]

export function feedLaws() {
  const laws = ['requests: law', 'hit rate: law', 'reads: law'].flatMap((law) => [law, 'counted'])
  return table(['N', 'k', 'α', 'A/W', ...laws], GRID.map(compare), { texts: 0 })
}

function compare([nodeCount, k, alpha, share]) {
  const arenaBytes = Math.max(1, Math.round(share * nodeCount * (k - 1)))
  const prefixCount = Math.round(alpha * SAMPLES)
  const how = { seed: 1, epochs: EPOCHS, lengthOf: () => 1, threshold: 0.9 }
  const trace = traceConformance({ sampleCount: SAMPLES, nodeCount, k, arenaBytes, prefixCount, ...how })
  let [accesses, first] = [0, 0]
  while (accesses < SAMPLES) if (/^(hit|miss|kept) /.test(trace[first++])) accesses++
  const later = trace.slice(first)
  const requests = later.filter((line) => line.startsWith('request'))
  const reads = requests.reduce((sum, line) => sum + line.split(' ').length - 2, 0)
  const misses = later.filter((line) => line.startsWith('miss')).length
  const total = (EPOCHS - 1) * SAMPLES
  const effective = share === 1 ? k : Math.min(k, 1 + arenaBytes / nodeCount)
  const law = (EPOCHS - 1) * nodeCount * Math.ceil((SAMPLES * (1 - alpha)) / nodeCount / effective)
  const [most, least] = share === 1 ? ['', ''] : ['≤ ', '≥ ']
  const hits = [`${least}${(1 - (1 - alpha) / effective).toFixed(4)}`, (1 - misses / total).toFixed(4)]
  const unread = (EPOCHS - 1) * prefixCount
  return [nodeCount, k, alpha, share, `${most}${law}`, requests.length, ...hits, total - unread, reads]
}
