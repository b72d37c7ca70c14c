// Counts what the feed's plan does for a grid of k, N and alpha, beside what theory says. Prints a table.
import { traceConformance } from '../../dist/testing/feed-conformance.js'

const sampleCount = 12_000
const epochs = 3
process.stdout.write(
  '12,000 samples, two epochs after the first, misses only (conformance mode). α: share of the samples that Cache_next takes; A/W: prefetch space over N(k − 1) samples.\n\n' +
    '| N | k | α | A/W | requests: law | counted | hit rate: law | counted | reads: law | counted |\n|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n',
)
for (const [nodeCount, k, alpha, share] of [
  [1, 1, 0, 1],
  [1, 32, 0, 1],
  [4, 8, 0, 1],
  [16, 32, 0, 1],
  [16, 32, 0, 0.5],
  [16, 32, 0, 0.2],
  [4, 1, 0.1, 1],
  [4, 1, 0.5, 1],
  [16, 32, 0.1, 1],
  [16, 32, 0.4, 1],
]) {
  const window = nodeCount * (k - 1)
  const arenaBytes = Math.max(1, Math.round(share * window))
  const prefixCount = Math.round(alpha * sampleCount)
  const trace = traceConformance({
    sampleCount,
    seed: 1,
    epochs,
    nodeCount,
    k,
    arenaBytes,
    prefixCount,
    lengthOf: () => 1,
    threshold: 0.9,
  })
  let accesses = 0
  let first = 0
  while (accesses < sampleCount) if (/^(hit|miss|kept) /.test(trace[first++])) accesses++
  const later = trace.slice(first)
  const requests = later.filter((line) => line.startsWith('request'))
  const reads = requests.reduce((sum, line) => sum + line.split(' ').length - 2, 0)
  const misses = later.filter((line) => line.startsWith('miss')).length
  const total = (epochs - 1) * sampleCount
  const effective = share === 1 ? k : Math.min(k, 1 + arenaBytes / nodeCount)
  const perNode = (sampleCount * (1 - alpha)) / nodeCount
  const law = (epochs - 1) * nodeCount * Math.ceil(perNode / effective)
  const sign = share === 1 ? '' : '≤ '
  const hitSign = share === 1 ? '' : '≥ '
  process.stdout.write(
    `| ${nodeCount} | ${k} | ${alpha} | ${share} | ${sign}${law} | ${requests.length} | ${hitSign}${(1 - (1 - alpha) / effective).toFixed(4)} | ${(1 - misses / total).toFixed(4)} | ${total - (epochs - 1) * prefixCount} | ${reads} |\n`,
  )
}
