// Writes docs/benchmarks/shares.md and shares.svg: three groups, one of them greedy, with shares and without.
// node scripts/bench/shares.mjs [nodes] [days] [seed]
import { writeFileSync } from 'node:fs'
import { drawBars } from './cluster-plot.mjs'
import { GROUPS, simulateShares } from './shares-simulation.mjs'

const [NODES, DAYS, SEED] = [16, 14, 7].map((fallback, index) => Number(process.argv[2 + index] ?? fallback))
const TIB = 1024 ** 4
const SHARES = [
  { party: 'group:vision', percent: 40 },
  { party: 'group:speech', percent: 40 },
  { party: 'group:greedy', percent: 20 },
]
const runs = [
  { name: 'without shares', colour: '#999', groups: simulate(undefined) },
  { name: 'with shares', colour: '#06c', groups: simulate(SHARES) },
]

const rows = GROUPS.flatMap(({ title }, index) =>
  runs.map(({ name, groups }) => {
    const group = groups[index]
    return `| ${[
      title,
      name,
      group.jobs.toLocaleString('en-US'),
      `${hitPercent(group).toFixed(1)} %`,
      minutes(mean(group.waitsMs)),
      minutes(quantile(group.waitsMs, 0.99)),
      group.refusals.toLocaleString('en-US'),
      `${(group.fetchedBytes / TIB).toFixed(0)} TiB`,
    ].join(' | ')} |`
  }),
)
const total = (groups) => (groups.reduce((sum, group) => sum + group.fetchedBytes, 0) / TIB).toFixed(0)

const text = `# Shares: a greedy neighbour

\`npm run bench:shares -- ${NODES} ${DAYS} ${SEED}\`. Time is simulated, so the figures are the same on every machine.

${NODES} nodes of 4 TiB (80 % allowed), ${DAYS} days. **vision** and **speech** have 40 datasets each of 40 to 400 GiB, begin a job
every 6 minutes that runs 1 to 3 hours, and come back to their datasets by Zipf's law, on the four nodes that
\`dsc hint\` would prefer. **greedy** begins a job a minute, each with a dataset that it has hardly ever read before, on any
node. Admission and eviction are dsc's own; staging runs at 1 GiB/s; a refused job asks again after 10 minutes. With
shares, vision and speech are guaranteed 40 % each, greedy 20 %. The same jobs come in both runs.

![hits and waits of each group, with shares and without](shares.svg)

A hit found its dataset on its node when it came; a wait is the time until it could read, refusals included.

| group | | jobs | hits | mean wait, min | p99 wait, min | refusals | fetched |
|---|---|--:|--:|--:|--:|--:|--:|
${rows.join('\n')}

The greedy group pays: what the others keep for their next job is guaranteed to them, so its jobs wait for each other.
The store sent ${total(runs[0].groups)} TiB without shares and ${total(runs[1].groups)} TiB with them.
`
process.stdout.write(text)
const docs = new URL('../../docs/benchmarks/', import.meta.url)
writeFileSync(new URL('shares.md', docs), text)
writeFileSync(
  new URL('shares.svg', docs),
  drawBars([
    { title: 'Jobs that found their dataset', bars: barsOf(hitPercent, (value) => `${value.toFixed(1)} %`) },
    {
      title: 'Mean wait for data',
      bars: barsOf(
        (group) => mean(group.waitsMs) / 60_000,
        (value) => `${value.toFixed(1)} min`,
      ),
    },
  ]),
)

function simulate(shares) {
  return simulateShares({ nodes: NODES, days: DAYS, seed: SEED, shares })
}

function barsOf(measure, format) {
  return GROUPS.flatMap(({ title }, index) =>
    runs.map(({ name, colour, groups }) => {
      const value = measure(groups[index])
      return [`${title}, ${name}`, value, format(value), colour]
    }),
  )
}

function hitPercent({ hits, jobs }) {
  return (100 * hits) / Math.max(1, jobs)
}

function mean(values) {
  return values.reduce((sum, value) => sum + value, 0) / Math.max(1, values.length)
}

function quantile(values, share) {
  const sorted = values.toSorted((one, other) => one - other)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0
}

function minutes(ms) {
  return (ms / 60_000).toFixed(1)
}
