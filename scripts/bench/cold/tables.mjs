// What runs of cold.mjs come to: a table for each set, step and machine, with a row for each loader.
import { count as format, ratio, table } from '../harness/tables.mjs'

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
export function loaderTables(runs) {
  const heads = [
    'loader',
    'first batch, s',
    'epoch 1, s (× limit)',
    'epoch 2, s',
    'both, s',
    'copies from the store',
    'runs',
  ]
  return summarize(runs).flatMap(({ title, step, machine, limit, rows }) => [
    `**${title}, step ${step} of the link's pace** (${machine}; limit of an epoch: ${limit.toFixed(1)} s)\n`,
    ...table(
      heads,
      rows.map((row) => [NAMES[row.loader], ...loaderCells(row, limit), row.runs]),
    ),
  ])
}

function loaderCells({ unfinished, first, epochs, copies }, limit) {
  if (unfinished !== undefined) return ['–', `not in ${unfinished} s`, '–', '–', '–']
  const [one, two] = epochs
  const times = `${one.toFixed(1)} (${ratio(one, limit)} ×)`
  return [first.toFixed(2), times, two.toFixed(1), (one + two).toFixed(1), copies.toFixed(3)]
}

/** Tables of medians; a loader none of whose runs ended has only `unfinished`. `limit`: the larger of transfer and training, s. */
function summarize(runs) {
  return groups(runs, ({ set, count, step, machine }) => `${set} ${count} ${step} ${machine}`).map((of) => {
    const { step, machine, linkSeconds } = of[0]
    const rows = groups(of, ({ loader }) => loader).map((same) => {
      const { loader } = same[0]
      const ended = same.filter(({ unfinished }) => unfinished === undefined)
      if (ended.length === 0) return { loader, runs: same.length, unfinished: same[0].unfinished }
      const figure = (read) => middle(ended.map(read))
      const epochs = [0, 1].map((epoch) => figure((run) => run.epochs[epoch]))
      return {
        loader,
        runs: ended.length,
        first: figure(({ first }) => first),
        epochs,
        copies: figure(({ copies }) => copies),
      }
    })
    return { title: titleOf(of[0]), step, machine, limit: linkSeconds * Math.max(1, step), rows }
  })
}

function groups(list, keyOf) {
  return [...Map.groupBy(list, keyOf).values()]
}

function titleOf({ set, count }) {
  return `${format(count)} ${UNITS[set]}`
}

function middle(numbers) {
  const sorted = numbers.toSorted((a, b) => a - b)
  return (sorted[(sorted.length - 1) >> 1] + sorted[sorted.length >> 1]) / 2
}
