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
/** Those that are judged; the others are judged by them. */
const OWN = ['arriving', 'unproven', 'listed']

/** The goals of dsc's own loaders; headers of shards come on top of the shards. */
const GOALS = { firstSeconds: 1.5, timesSooner: 5, timesLimit: 1.1, copies: 1.01 }

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

/** What each row of dsc comes to, and whether that is enough. */
export function goalsTable(runs) {
  const heads = [
    'dataset',
    'step',
    'loader',
    'first batch',
    'than staged first',
    'epoch 1, × limit',
    'copies',
  ]
  const rows = summarize(runs).flatMap((of) =>
    of.rows
      .filter(({ loader, unfinished }) => OWN.includes(loader) && unfinished === undefined)
      .map((row) => [of.title, of.step, NAMES[row.loader], ...judge(row, of)]),
  )
  return table([...heads, "epoch 1, next loader's", "both, next loader's"], rows)
}

function judge({ first, epochs, copies }, { rows, limit }) {
  const say = (figure, isMet) => (isMet ? figure : `**${figure}, missed**`)
  const staged = rows.find(({ loader }) => loader === 'staged')
  const others = rows.filter(({ loader }) => loader !== 'staged' && !OWN.includes(loader))
  const ahead = (read) => {
    if (others.length === 0) return '–'
    const next = Math.min(...others.map((row) => (row.epochs ? read(row.epochs) : Number.POSITIVE_INFINITY)))
    return Number.isFinite(next) ? say(`${ratio(next, read(epochs))} ×`, next > read(epochs)) : 'none ended'
  }
  return [
    say(`${first.toFixed(2)} s`, first <= GOALS.firstSeconds),
    staged
      ? say(`${(staged.first / first).toFixed(1)} × sooner`, staged.first >= GOALS.timesSooner * first)
      : '–',
    say(ratio(epochs[0], limit), epochs[0] <= GOALS.timesLimit * limit),
    say(copies.toFixed(3), copies <= GOALS.copies),
    ahead(([one]) => one),
    ahead(([one, two]) => one + two),
  ]
}

/** What `dsc feed plan --cold` said before, beside what came. */
export function planTable(runs) {
  const heads = ['dataset', 'step', 'start', 'first batch, s: planned / came', 'epoch 1, s: planned / came']
  const keyOf = ({ set, count, step, loader, machine }) => [set, count, step, loader, machine].join(' ')
  const planned = groups(
    runs.filter(({ plan }) => plan?.epoch),
    keyOf,
  )
  const rows = planned.map((of) => {
    const pair = (plan, run) => `${middle(of.map(plan)).toFixed(1)} / ${middle(of.map(run)).toFixed(1)}`
    const first = pair(
      ({ plan }) => plan.first,
      (run) => run.first,
    )
    const epoch = pair(
      ({ plan }) => plan.epoch,
      (run) => run.epochs[0],
    )
    return [titleOf(of[0]), of[0].step, NAMES[of[0].loader], first, epoch]
  })
  return table(heads, rows)
}

export function nodesTable(runs) {
  const { megabits, delayMs, objects, bytes, machine } = runs[0]
  const last = (run) => run && Math.max(...run.epoch)
  const seconds = (list) => `${Math.min(...list).toFixed(2)} to ${Math.max(...list).toFixed(2)}`
  const alone = runs.find(({ nodes }) => nodes === 1)
  const heads = [
    'nodes',
    'first batch, s',
    'epoch 1, s',
    "last node, × one node's",
    'copies from the store',
    'processors busy',
  ]
  const rows = runs.map((run) => {
    const { nodes, first, epoch, copies, processor } = run
    const busy = `${Math.round(100 * processor)} %`
    return [nodes, seconds(first), seconds(epoch), ratio(last(run), last(alone)), copies.toFixed(3), busy]
  })
  const how = `Cables of ${megabits} Mb/s each way, a store that answers after ${delayMs} ms; ${format(objects)} objects (${Math.round(bytes / 1e6)} MB); ${machine}.\n`
  return [how, ...table(heads, rows, { texts: 0 })]
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
