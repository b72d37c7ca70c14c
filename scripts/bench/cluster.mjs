// The record and the policy under the load of a whole cluster, and three real agents that pass datasets on.
// Usage: npm run bench:cluster -- [nodes] [jobs] [clients]     (full: 1000 20000 32)
// With --peers: only how fast one node takes from another, beside curl and nginx (peers.mjs has its options).

import { writeFileSync } from 'node:fs'
import { cpus, loadavg } from 'node:os'
import { measureAgents } from './cluster-agents.mjs'
import { drawBars } from './cluster-plot.mjs'
import { POOLS, SEED, simulateCluster } from './cluster-simulation.mjs'

if (process.argv.includes('--peers')) {
  await import('./peers.mjs')
  process.exit()
}
const [NODES = 1000, JOBS = 20_000, CLIENTS = 32] = process.argv.slice(2).map(Number)
const loadBefore = loadavg()[0]
const simulated = await simulateCluster(NODES, JOBS, CLIENTS)
const loadDuring = loadavg()[0]
const agents = await measureAgents()

const { seconds, sums, retries, rows } = simulated
const operations = [...simulated.loaded.values()].reduce((sum, values) => sum + values.length, 0)
const tib = (bytes) => `${(bytes / 1024 ** 4).toFixed(1)} TiB`
const sources = [
  ['every job downloads', sums.asked, tib(sums.asked), '#999'],
  ['LRU per node, no peers', sums.misses, tib(sums.misses), '#c80'],
  ['dsc: LRU and peers', sums.fromStore, tib(sums.fromStore), '#06c'],
]
const latencyRows = [...simulated.loaded].map(([name, values]) => {
  const alone = simulated.quiet.get(name)
  const shown = alone ? [quantile(alone, 0.5), quantile(alone, 0.99)] : ['-', '-']
  return `| ${[name, values.length, quantile(values, 0.5), quantile(values, 0.99), ...shown].join(' | ')} |`
})
const agentRows = agents.rows.map(
  ({ name, count, bytes, from, seconds: took, storeShare }) =>
    `| ${name}: ${count.toLocaleString('en-US')} × ${bytes / 1024} KiB | ${from} | ${took.toFixed(2)} | ${Math.round((count * bytes) / took / 1e6)} | ${storeShare.toFixed(2)} |`,
)

const text = `# A cluster under load

\`npm run bench:cluster -- ${NODES} ${JOBS} ${CLIENTS}\` on ${cpus().length} × ${cpus()[0].model}, Node ${process.versions.node}, ${new Date().toISOString().slice(0, 10)}.
Load average before ${loadBefore.toFixed(1)}, at the end of the simulation ${loadDuring.toFixed(1)}: database and clients share these cores, and other
work ran beside them where it was above 2 before the start. Times therefore are upper bounds; counts and bytes do not depend on load.

## ${NODES.toLocaleString('en-US')} nodes, ${JOBS.toLocaleString('en-US')} jobs, simulated on the real record

Nodes of 4 TiB (80 % allowed), 300 datasets of 20 to 800 GiB chosen by Zipf's law (seed ${SEED}), each job on a random node, the
real admission and eviction, the real record in a real PostgreSQL 18 with fsync; ${CLIENTS} jobs in flight over ${POOLS} pools of one
process, as fast as they go. Copying itself takes no time here.

- ${Math.round(operations / seconds)} operations/s (${operations.toLocaleString('en-US')} in ${seconds.toFixed(1)} s), ${Math.round(JOBS / seconds)} jobs/s; ${retries.conflict} conflicts repeated, ${retries.lost} connections lost
- rows at the end: ${rows.copies.toLocaleString('en-US')} copies, ${rows.leases.toLocaleString('en-US')} leases, ${rows.events.toLocaleString('en-US')} events
- hits: ${((100 * sums.hits) / JOBS).toFixed(1)} % of jobs found their dataset on their random node (ready or being staged); refused ${sums.refused}
- bytes from the store: ${((100 * sums.fromStore) / sums.asked).toFixed(1)} % of what every job downloading reads, ${((100 * sums.fromStore) / sums.misses).toFixed(1)} % of LRU per node without peers

![bytes from the store and latencies](cluster.svg)

The first two columns are at saturation, so they are mostly waiting for the ${CLIENTS - 1} others; the last two are one job at a time.

| operation | count | median ms | p99 ms | alone: median | alone: p99 |
|---|--:|--:|--:|--:|--:|
${latencyRows.join('\n')}

## Three agents and PostgreSQL for real

One process per agent, all on this machine over loopback; wall time of \`dsc prepare\` with its start, checksums and fsync.
The last column is what the store sent, as a share of the dataset.

| dataset | taken from | s | MB/s | from the store |
|---|---|--:|--:|--:|
${agentRows.join('\n')}

\`dsc prepare\` of a ready dataset, ${agents.warmMs.length} times: median ${quantile(agents.warmMs, 0.5)} ms, slowest ${quantile(agents.warmMs, 1)} ms, of which most is the start of the process.
`
process.stdout.write(text)
const docs = new URL('../../docs/benchmarks/', import.meta.url)
writeFileSync(new URL('cluster.md', docs), text)
const alone = [...simulated.quiet].map(([name, values]) => [
  name,
  Number(quantile(values, 0.99)),
  `${quantile(values, 0.5)} / ${quantile(values, 0.99)} ms`,
  '#06c',
])
writeFileSync(
  new URL('cluster.svg', docs),
  drawBars([
    {
      title: `Read from the store by ${JOBS.toLocaleString('en-US')} jobs on ${NODES.toLocaleString('en-US')} nodes`,
      bars: sources,
    },
    { title: 'Latency of the record, one job at a time: median / p99', bars: alone },
  ]),
)

function quantile(values, share) {
  const sorted = values.toSorted((one, other) => one - other)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))].toFixed(1)
}
