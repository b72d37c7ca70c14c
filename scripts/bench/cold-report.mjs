// The page of cold.mjs from what it measured.
import { goalsTable } from './cold-goals.mjs'
import { groups, makeTables, median } from './cold-tables.mjs'

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

/** `results` of both kinds, in the order in which they were measured; `limitSeconds`: a run that takes longer is ended. */
export function formatReport(results, { limitSeconds }) {
  const loaders = results.filter(({ loader }) => loader !== undefined)
  const tables = makeTables(loaders)
  const nodes = results.filter(({ nodes }) => nodes !== undefined)
  const machines = [...new Set(results.map(({ machine }) => machine))]
  return `# Cold start

<!-- Written by \`npm run bench:cold\`: change scripts/bench/cold-report.mjs, not this page. -->
From an empty cache to the end of the second epoch, on ${machines.join(' or ')},
which the store, its link and the loaders share; Node ${process.versions.node}.

## Beside other loaders
A store behind a link of 1 Gb/s and 20 ms: it waits and paces its answers (this kernel has no netem). All loaders ran in
turn, each in a process of its own with two workers. A training step takes so much of the link's time for a batch of 64
samples of 100 KiB. *Limit* is the larger of transfer and training. MosaicML Streaming and LitData read formats of their
own, which they shuffle in blocks; of tar shards, boto3 and s3torchconnector shuffle the shards; all others shuffle
globally. Of plain files these two ask for one at a time in each worker, so that two epochs of 20,000 take them minutes.
A run that does not end in ${limitSeconds} s is ended, and has no figures. Each table names its machine: what two of them say is
not to be compared.
${tables.map(loaderTable).join('')}
${planTable(loaders)}
${nodesTable(nodes)}
## Tar shards: headers, or whole shards
The order of a global shuffle needs the list of all samples, and each header of a tar file says where the next one
stands. Where nobody has the list, dsc asks for the headers of up to 64 shards at once, from the last on, while whole
shards come from the first: the two meet where the list is known soonest. Of 64 shards of 32 MiB with samples of 100 KiB
that is 20,864 headers, 11 MB instead of 2.1 GB. Shards below 256 KiB, and those whose members take less than 32 KiB on
average, come whole: their headers would be most of their bytes. The list is kept for its version, for other nodes, too.

## Goals
The goals are a first batch after 1.5 s, five times sooner than staged first; epoch 1 within 1.10 × its limit; 1.00
copies from the store; several nodes: 2 s, 1.1 copies and 1.3 × one node's epoch. And ahead of every other loader in
the sum of two epochs, and of those that shuffle globally in epoch 1: the table holds dsc against all of them in both.
${goalsTable(tables, { nameOf, NAMES })}
**Plain files: first batch and epoch 1 are missed here.** The first batch comes thirteen times sooner than staged first,
but after 1.7 to 1.9 s. Seven runs of an evening before gave it after 1.08 to 1.29 s, and epoch 1 in 18.1 to 18.5 s, 1.10
to 1.13 × its limit; why all loaders took longer this time (MosaicML Streaming by a tenth, LitData by a fifth, dsc by a
quarter) was not found out; a compiler was seen beside them once. At the link's pace 22.5 s are 16.4 of training, 1.8
before the first batch, 2.0 that epoch 2 takes beside its steps, too, and 2.3 of waiting: a link that is just as quick as
training cannot make up for the others. Of 2,000 files the start alone takes more than half of the limit.

**Several nodes: missed.** Four different first batches take 2.1 s of the store's own cable here, and four feeds that
start at once on two processors 2.0 to 2.9 s where one takes 1.2; the first object comes 0.3 to 0.6 s later, and the 64
of a batch with the cable's own pace. Four nodes keep the processors busy to 76 to 90 %: they end 1.5 to 1.7
× as late as one (ten runs).

**First batch without the list of samples: missed.** Each header is a request: 43 µs of the feed's own thread, most of
it system calls and HTTP, and 37 µs of this store, which shares the two processors. In an earlier run it came after 3.6 s
without the list and after 1.7 s with it; in these 1.95 s feed and store worked 2.9 s, with what V8's threads and the
staging took, which goes on meanwhile. Fewer requests would take sizes of members for granted, or fetch their bytes.

**First batch with it.** The process starts, reads its settings and lists in 0.5 s; its threads load meanwhile. Then 64
shards are asked for their checksums, and the samples of the batch for their bytes, which share the link with two parts
of shards that were begun before.

**Processor time of a feed** over two epochs of 64 shards, \`start="unproven"\`: 20.6 s, of which 12.9 s in the threads
that fetch, digest and read, 4.6 s in the feed's own thread, 2.3 s in V8's and 0.9 s in libuv's. The store keeps an MD5
of each shard, so that its bytes are read once more in their order when all are here: 6 s, mostly after epoch 1.
<!-- not run: it takes minutes, and needs a quiet machine -->
\`\`\`sh
npm run bench:cold -- --write
# or in pieces, as the tables of plain files were made (the others are a day older):
npm run bench:cold -- --results R.json --nodes none --sets objects --steps 0.5,1 --loaders arriving,mosaicml,litdata
npm run bench:cold -- --results R.json --nodes none --sets objects --steps 0 --loaders arriving,staged,mosaicml,litdata
npm run bench:cold -- --results R.json --nodes none --sets objects --steps 0.5,1 --loaders arriving,s3torchconnector,boto3 --scale 0.1
npm run bench:cold -- --results R.json --nodes none --sets none --write
\`\`\`
`
}

function loaderTable(table) {
  const { step, machine, limit } = table
  const rows = table.rows.map(({ loader, runs, unfinished, ...row }) => {
    if (unfinished !== undefined)
      return `| ${[NAMES[loader], '–', `not in ${unfinished} s`, '–', '–', '–', runs].join(' | ')} |`
    const { first, epochs, copies } = row
    const [one, two] = epochs
    const times = `${one.toFixed(1)} (${(one / limit).toFixed(2)} ×)`
    const cells = [first.toFixed(2), times, two.toFixed(1), (one + two).toFixed(1), copies.toFixed(3), runs]
    return `| ${[NAMES[loader], ...cells].join(' | ')} |`
  })
  return `
**${nameOf(table)}, step ${step} of the link's pace** (${machine}; limit of an epoch: ${limit.toFixed(1)} s)

| loader | first batch, s | epoch 1, s (× limit) | epoch 2, s | both, s | copies from the store | runs |
|---|--:|--:|--:|--:|--:|--:|
${rows.join('\n')}
`
}

function nameOf({ set, count }) {
  return `${count.toLocaleString('en-US')} ${UNITS[set]}`
}

/** What was planned beside what came. */
function planTable(runs) {
  const planned = runs.filter(({ plan }) => plan?.epoch)
  if (planned.length === 0) return ''
  const rows = groups(planned, (run) =>
    [run.set, run.count, run.step, run.loader, run.machine].join(' '),
  ).map((of) => {
    const { step, loader } = of[0]
    const pair = (plan, run) => `${median(of.map(plan)).toFixed(1)} / ${median(of.map(run)).toFixed(1)}`
    const cells = [
      ...[nameOf(of[0]), step, NAMES[loader]],
      pair(
        ({ plan }) => plan.first,
        ({ first }) => first,
      ),
      pair(
        ({ plan }) => plan.epoch,
        ({ epochs }) => epochs[0],
      ),
    ]
    return `| ${cells.join(' | ')} |`
  })
  return `## What \`dsc feed plan --cold\` said before
Asked before each run, with the link's delay and bandwidth. Of shards whose list is not known it reads headers for 0.8 s
and takes their pace, that of the first 0.4 s for as many; the start of its own process stands for that of a feed's.
On top come 0.3 s for a client's start, a question for the checksums of each shard, and the last sync. Left out is what
the staging takes of the processors meanwhile, and what keeps the link from being full.

| dataset | step | start | first batch, s: planned / came | epoch 1, s: planned / came |
|---|--:|---|--:|--:|
${rows.join('\n')}
`
}

function nodesTable(runs) {
  if (runs.length === 0) return ''
  const { megabits, delayMs, objects, bytes, machine } = runs[0]
  const alone = runs.find(({ nodes }) => nodes === 1)
  const rows = runs.map(({ nodes, first, epoch, copies, processor }) => {
    const ratio = alone === undefined ? '–' : (Math.max(...epoch) / Math.max(...alone.epoch)).toFixed(2)
    const seconds = (list) => `${Math.min(...list).toFixed(2)} to ${Math.max(...list).toFixed(2)}`
    return `| ${[nodes, seconds(first), seconds(epoch), ratio, copies.toFixed(3), `${Math.round(100 * processor)} %`].join(' | ')} |`
  })
  return `## Several nodes at once
Each node is a network namespace with an agent and a cable of ${megabits} Mb/s each way, as the store has, which answers
after ${delayMs} ms; one real PostgreSQL; ${machine}. On each, a job of its own reads all ${objects.toLocaleString('en-US')} objects (${Math.round(bytes / 1e6)} MB) in an order of its own.

| nodes | first batch, s | epoch 1, s | last node, × one node's | copies from the store | processors busy |
|--:|--:|--:|--:|--:|--:|
${rows.join('\n')}
`
}
