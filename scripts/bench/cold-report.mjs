// The page of cold.mjs from what it measured.
import { cpus, loadavg } from 'node:os'

const NAMES = {
  arriving: 'dsc',
  unproven: 'dsc, `start="unproven"`',
  listed: 'the same, list of samples known',
  staged: 'dsc, staged first',
  mosaicml: 'MosaicML Streaming (MDS)',
  litdata: 'LitData (its chunks)',
  s3torchconnector: 's3torchconnector',
  boto3: 'DataLoader over boto3',
}
const UNITS = { objects: 'objects of 100 KiB', shards: 'tar shards of 32 MiB' }

/** Rows are medians of the runs of one loader over one set with one step. */
export function formatReport(results) {
  const loaders = results.filter(({ loader }) => loader !== undefined)
  const nodes = results.filter(({ nodes }) => nodes !== undefined)
  const [cpu] = cpus()
  return `# Cold start

<!-- Written by \`npm run bench:cold\`: change scripts/bench/cold-report.mjs, not this page. -->
From an empty cache to the end of the second epoch. ${cpus().length} × ${cpu.model}, which the store, its link and the loaders
share; load ${loadavg()[0].toFixed(1)} at the end; Node ${process.versions.node}.

## Beside other loaders
A store behind a link of 1 Gb/s and 20 ms: it waits and paces its answers (this kernel has no netem). All loaders ran in
turn, each in a process of its own with two workers. A training step takes so much of the link's time for a batch of 64
samples of 100 KiB. *Limit* is the larger of transfer and training. MosaicML Streaming and LitData read formats of their
own, which they shuffle in blocks; of tar shards, boto3 and s3torchconnector shuffle the shards; all others shuffle globally.
${loaderTables(loaders)}
${nodesTable(nodes)}
<!-- not run: it takes minutes, and needs a quiet machine -->
\`\`\`sh
npm run bench:cold -- --write
\`\`\`
`
}

function loaderTables(runs) {
  const tables = groups(runs, ({ set, count, step }) => `${set} ${count} ${step}`).map((table) => {
    const { set, count, step, linkSeconds } = table[0]
    const limit = linkSeconds * Math.max(1, step)
    const rows = groups(table, ({ loader }) => loader).map((of) => {
      const figure = (read) => median(of.map(read))
      const [one, two] = [0, 1].map((epoch) => figure(({ epochs }) => epochs[epoch]))
      const cells = [
        figure(({ first }) => first).toFixed(2),
        `${one.toFixed(1)} (${(one / limit).toFixed(2)} ×)`,
        two.toFixed(1),
        (one + two).toFixed(1),
        figure(({ copies }) => copies).toFixed(3),
        of.length,
      ]
      return `| ${[NAMES[of[0].loader], ...cells].join(' | ')} |`
    })
    return `
**${count.toLocaleString('en-US')} ${UNITS[set]}, step ${step} of the link's pace** (limit of an epoch: ${limit.toFixed(1)} s)

| loader | first batch, s | epoch 1, s (× limit) | epoch 2, s | both, s | copies from the store | runs |
|---|--:|--:|--:|--:|--:|--:|
${rows.join('\n')}
`
  })
  return tables.join('')
}

function nodesTable(runs) {
  if (runs.length === 0) return ''
  const { megabits, delayMs, objects, bytes } = runs[0]
  const alone = runs.find(({ nodes }) => nodes === 1)
  const rows = runs.map(({ nodes, first, epoch, copies, processor }) => {
    const ratio = alone === undefined ? '–' : (Math.max(...epoch) / Math.max(...alone.epoch)).toFixed(2)
    const seconds = (list) => `${Math.min(...list).toFixed(2)} to ${Math.max(...list).toFixed(2)}`
    return `| ${[nodes, seconds(first), seconds(epoch), ratio, copies.toFixed(3), `${Math.round(100 * processor)} %`].join(' | ')} |`
  })
  return `## Several nodes at once
Each node is a network namespace with an agent and a cable of ${megabits} Mb/s each way, as the store has, which answers
after ${delayMs} ms; one real PostgreSQL. On each, a job of its own reads all ${objects.toLocaleString('en-US')} objects (${Math.round(bytes / 1e6)} MB) in an order of its own.

| nodes | first batch, s | epoch 1, s | last node, × one node's | copies from the store | processors busy |
|--:|--:|--:|--:|--:|--:|
${rows.join('\n')}
`
}

function groups(list, keyOf) {
  return [...Map.groupBy(list, keyOf).values()]
}

function median(numbers) {
  const sorted = numbers.toSorted((a, b) => a - b)
  return (sorted[(sorted.length - 1) >> 1] + sorted[sorted.length >> 1]) / 2
}
