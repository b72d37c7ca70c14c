// Three groups on a cluster, one of them greedy, with shares and without: simulated time, the real admission and eviction.
import { planAdmission } from '../../dist/policy/plan-admission.js'
import { mulberry32 } from '../seeded-random.mjs'
import { drawBars } from './harness/draw-bars.mjs'
import { EventQueue, pick } from './harness/simulated-time.mjs'
import { count, quantile, table } from './harness/tables.mjs'

const GIB = 1024 ** 3
const MINUTE = 60_000
const CAPACITY = 4096 * GIB
/** Staging takes so many bytes per ms: 1 GiB/s. */
const STAGE_BYTES_PER_MS = GIB / 1000
/** A job that is refused asks again after this. */
const RETRY_MS = 10 * MINUTE
const SHARES = [
  { party: 'group:vision', percent: 40 },
  { party: 'group:speech', percent: 40 },
  { party: 'group:greedy', percent: 20 },
]
/** How the groups behave. `every`: minutes between two jobs on the whole cluster; `runs`: minutes a job takes. */
const GROUPS = [
  { title: 'vision', datasets: 40, every: 6, runs: [60, 180], isSweep: false },
  { title: 'speech', datasets: 40, every: 6, runs: [60, 180], isSweep: false },
  { title: 'greedy', datasets: 3000, every: 1, runs: [30, 90], isSweep: true },
]

export const benchmark = {
  page: 'shares.md',
  options: { nodes: 16, days: 14, seed: 7 },
  smoke: { nodes: 16, days: 0.1 },
  run(bench) {
    const runs = [
      { name: 'without shares', colour: '#999', groups: simulate(bench.given, undefined) },
      { name: 'with shares', colour: '#06c', groups: simulate(bench.given, SHARES) },
    ]
    const each = (read) =>
      GROUPS.flatMap((_, at) => runs.map(({ name, colour, groups }) => read(groups[at], name, colour)))
    const minutes = (ms) => (ms / MINUTE).toFixed(1)
    const tib = (bytes) => `${(bytes / 1024 ** 4).toFixed(0)} TiB`
    const rows = each((group, name) => [
      ...[group.title, name, count(group.jobs), `${hitPercent(group).toFixed(1)} %`],
      ...[minutes(mean(group.waitsMs)), minutes(quantile(group.waitsMs, 0.99))],
      ...[count(group.refusals), tib(group.fetchedBytes)],
    ])
    const heads = ['group', '', 'jobs', 'hits', 'mean wait, min', 'p99 wait, min', 'refusals', 'fetched']
    const [without, shared] = runs.map(({ groups }) =>
      tib(groups.reduce((sum, group) => sum + group.fetchedBytes, 0)),
    )
    const sent = `The store sent ${without} without shares and ${shared} with them.`
    bench.section('groups', table(heads, rows, { texts: 2 }), sent)
    const bars = (read, format) =>
      each((group, name, colour) => [`${group.title}, ${name}`, read(group), format(read(group)), colour])
    const groups = [
      { title: 'Jobs that found their dataset', bars: bars(hitPercent, (value) => `${value.toFixed(1)} %`) },
      {
        title: 'Mean wait for data',
        bars: bars(
          ({ waitsMs }) => mean(waitsMs),
          (value) => `${minutes(value)} min`,
        ),
      },
    ]
    bench.picture('shares.svg', drawBars(groups))
  },
}

function hitPercent({ hits, jobs }) {
  return (100 * hits) / Math.max(1, jobs)
}

function mean(values) {
  return values.reduce((sum, value) => sum + value, 0) / Math.max(1, values.length)
}

/**
 * Plays `days` of jobs on `nodes` nodes. A group of the first kind comes back to its datasets by Zipf's law, each with
 * a few nodes that it prefers; the greedy one reads a new dataset every minute and hardly ever comes back.
 */
function simulate({ nodes, days, seed }, shares) {
  const random = mulberry32(seed)
  const groups = GROUPS.map((group) => ({
    ...{
      ...group,
      party: `group:${group.title}`,
      jobs: 0,
      hits: 0,
      refusals: 0,
      waitsMs: [],
      fetchedBytes: 0,
    },
    sizes: Array.from({ length: group.datasets }, () => Math.round((40 + 360 * random() ** 2) * GIB)),
  }))
  const policy = { maxPercent: 80, ...(shares && { shares }) }
  const cluster = Array.from({ length: nodes }, () => [])
  const queue = new EventQueue()
  const begin = (job) => {
    const nowMs = queue.now
    const { group } = job
    const isHere = cluster[job.node].some(({ dataset }) => dataset === job.dataset)
    if (!isHere) {
      const admission = admit(cluster[job.node], { policy, job })
      if (admission.outcome !== 'admit') {
        group.refusals += 1
        queue.add(nowMs + RETRY_MS, () => begin(job))
        return
      }
      const gone = new Set(admission.plan.victims.map(({ copy }) => copy.copyId))
      cluster[job.node] = [
        ...cluster[job.node].filter(({ copyId }) => !gone.has(copyId)),
        newCopy(job, nowMs),
      ]
      group.fetchedBytes += job.bytes
    } else if (nowMs === job.atMs) group.hits += 1
    const copy = cluster[job.node].find(({ dataset }) => dataset === job.dataset)
    const readyMs = Math.max(nowMs, copy.readyAtMs)
    copy.referenceCount += 1
    Object.assign(copy, { lastUsedAtMs: nowMs, parties: [group.party] })
    group.jobs += 1
    group.waitsMs.push(readyMs - job.atMs)
    queue.add(readyMs + job.runsMs, () => (copy.referenceCount -= 1))
  }
  for (const job of planJobs(groups, { nodes, days, random })) queue.add(job.atMs, () => begin(job))
  queue.runAll()
  return groups
}

function planJobs(groups, { nodes, days, random }) {
  const jobs = []
  for (const group of groups) {
    const weights = group.sizes.map((_, index) => 1 / (index + 1) ** 0.8)
    let swept = 0
    for (let atMs = 0; atMs < days * 24 * 60 * MINUTE; ) {
      atMs += -Math.log(1 - random()) * group.every * MINUTE
      const index = group.isSweep ? swept++ % group.datasets : pick(weights, random)
      // Jobs of a dataset go to one of four nodes, as `dsc hint --prefer` has it.
      const preferred = () => (index * 7 + Math.floor(random() * 4) * 5) % nodes
      const node = group.isSweep ? Math.floor(random() * nodes) : preferred()
      const [least, most] = group.runs
      const runsMs = (least + (most - least) * random()) * MINUTE
      jobs.push({ atMs, group, node, dataset: `${group.title}-${index}`, bytes: group.sizes[index], runsMs })
    }
  }
  return jobs
}

function admit(copies, { policy, job }) {
  const used = copies.reduce((sum, { chargedBytes }) => sum + chargedBytes, 0)
  const reserved = { copyId: 'asked', state: 'reserved', chargedBytes: 0, parties: [job.group.party] }
  return planAdmission({
    policy,
    disk: { capacityBytes: CAPACITY, freeBytes: CAPACITY - used, inodesTotal: 0, inodesFree: 0 },
    copies: [...copies, { ...newCopy(job, 0), ...reserved }],
    request: { datasets: 1, bytes: job.bytes, inodes: 0 },
    requestCopyId: 'asked',
  })
}

let made = 0
/** A copy whose bytes are all there at once, as far as the policy is concerned; `readyAtMs` says when jobs may begin. */
function newCopy({ dataset, bytes }, nowMs) {
  made += 1
  return {
    ...{ copyId: `copy-${made}`, dataset, version: 'v', state: 'ready', source: { name: dataset } },
    ...{ chargedBytes: bytes, chargedInodes: 0, writtenBytes: bytes, lock: null, lastUsedAtMs: nowMs },
    ...{ readyAtMs: nowMs + bytes / STAGE_BYTES_PER_MS, referenceCount: 0, isBeingStaged: false },
  }
}
