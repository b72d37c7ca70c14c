// The record and the policy under the load of a whole cluster: simulated nodes and jobs, the real admission and eviction,
// the real record in a real PostgreSQL with fsync. Copying takes no time here.
import { planAdmission } from '../../dist/policy/plan-admission.js'
import { openPostgresRecord } from '../../dist/records/postgres/record-store.js'
import { startPostgresServer } from '../../dist/testing/postgres-server.js'
import { mulberry32 } from '../seeded-random.mjs'
import { drawBars } from './harness/draw-bars.mjs'
import { pick } from './harness/simulated-time.mjs'
import { count, quantile, table } from './harness/tables.mjs'

const SEED = 7
const POOLS = 4
const GIB = 1024 ** 3
const DISK = { capacityBytes: 4096 * GIB, freeBytes: 4096 * GIB, inodesTotal: 0, inodesFree: 0 }
const SIZES = { files: 1000, chargedInodes: 1000 }

export const benchmark = {
  page: 'cluster.md',
  // quiet: jobs of the second run, one at a time
  options: { nodes: 1000, jobs: 20_000, clients: 32, quiet: 500 },
  smoke: { nodes: 5, jobs: 60, clients: 4, quiet: 20 },
  async run(bench) {
    const server = await startPostgresServer({ isDurable: true })
    bench.after(() => server.close())
    const found = await simulate(server, bench.given)
    const { nodes, jobs } = bench.given
    const { sums } = found
    bench.section('simulated', describe(found, bench.given), tableOf(found))
    const tib = (bytes) => `${(bytes / 1024 ** 4).toFixed(1)} TiB`
    const alone = [...found.quiet].map(([name, values]) => {
      const p99 = quantile(values, 0.99)
      return [name, p99, `${quantile(values, 0.5).toFixed(1)} / ${p99.toFixed(1)} ms`, '#06c']
    })
    const sources = [
      ['every job downloads', sums.asked, tib(sums.asked), '#999'],
      ['LRU per node, no peers', sums.misses, tib(sums.misses), '#c80'],
      ['dsc: LRU and peers', sums.fromStore, tib(sums.fromStore), '#06c'],
    ]
    const groups = [
      { title: `Read from the store by ${count(jobs)} jobs on ${count(nodes)} nodes`, bars: sources },
      { title: 'Latency of the record, one job at a time: median / p99', bars: alone },
    ]
    bench.picture('cluster.svg', drawBars(groups))
  },
}

function describe({ seconds, sums, retries, rows, loaded }, { jobs }) {
  const operations = [...loaded.values()].reduce((sum, values) => sum + values.length, 0)
  const percent = (part, whole) => `${((100 * part) / whole).toFixed(1)} %`
  return [
    `- ${count(operations / seconds)} operations/s (${count(operations)} in ${seconds.toFixed(1)} s), ${count(jobs / seconds)} jobs/s; ${retries.conflict} conflicts repeated, ${retries.lost} connections lost`,
    `- rows at the end: ${count(rows.copies)} copies, ${count(rows.leases)} leases, ${count(rows.events)} events`,
    `- hits: ${percent(sums.hits, jobs)} of jobs found their dataset on their random node (ready or being staged); refused ${sums.refused}`,
    `- bytes from the store: ${percent(sums.fromStore, sums.asked)} of what every job downloading reads, ${percent(sums.fromStore, sums.misses)} of LRU per node without peers`,
    '',
  ]
}

function tableOf({ loaded, quiet }) {
  const shares = [0.5, 0.99]
  const rows = [...loaded].map(([name, values]) => {
    const alone = quiet.get(name)
    const shown = shares.map((share) => (alone ? quantile(alone, share).toFixed(1) : '-'))
    return [name, values.length, ...shares.map((share) => quantile(values, share).toFixed(1)), ...shown]
  })
  return table(['operation', 'count', 'median ms', 'p99 ms', 'alone: median', 'alone: p99'], rows)
}

/** Runs the jobs on the nodes, `clients` at a time, then some more one at a time. */
async function simulate(server, { nodes, jobs, clients, quiet: quietJobs }) {
  const random = mulberry32(SEED)
  // 300 datasets of 20 to 800 GiB, asked for by Zipf's law: a few are used by most jobs.
  const datasets = Array.from({ length: 300 }, (_, index) => ({
    name: `d${index}`,
    bytes: Math.round((20 + 780 * random() ** 2) * GIB),
  }))
  const weights = datasets.map((_, index) => 1 / (index + 1) ** 0.9)
  const makeJob = (index) => ({
    task: `job-${index}`,
    dataset: datasets[pick(weights, random)],
    node: `node-${Math.floor(random() * nodes)}`,
  })
  const queue = Array.from({ length: jobs }, (_, index) => makeJob(index)).values()
  const url = await server.makeDatabase()
  const retries = { conflict: 0, lost: 0 }
  const options = { onRetry: (reason) => (retries[reason] += 1), connections: 8 }
  const records = await Promise.all(Array.from({ length: POOLS }, () => openPostgresRecord(url, options)))
  const sums = { hits: 0, fromStore: 0, refused: 0, asked: 0, misses: 0 }
  const loaded = createTimer()
  const held = [] // a job ends when as many others as there are nodes have begun after it
  const startedMs = performance.now()
  await Promise.all(
    Array.from({ length: clients }, async (_, client) => {
      const at = { record: records[client % POOLS], timed: loaded.timed, sums }
      for (const job of queue) {
        await runJob(at, job)
        held.push(job)
        while (held.length > nodes) await endJob(at, held.shift())
      }
    }),
  )
  const seconds = (performance.now() - startedMs) / 1000
  const quiet = createTimer()
  const [record] = records
  for (let index = 0; index < quietJobs; index++) {
    const at = { record, timed: quiet.timed, sums: { ...sums } }
    await runJob(at, makeJob(jobs + index))
    await endJob(at, makeJob(jobs + index))
  }
  const copies = await quiet.timed('listCopies (all)', () => record.listCopies({}, record.nowMs()))
  const leases = await record.listLeases({})
  const events = await record.listEvents({ limit: 1_000_000 })
  await Promise.all(records.map((each) => each.close()))
  const rows = { copies: copies.length, leases: leases.length, events: events.length }
  return { seconds, sums, retries, rows, loaded: loaded.latencies, quiet: quiet.latencies }
}

function createTimer() {
  const latencies = new Map()
  const timed = async (name, work) => {
    const startMs = performance.now()
    const value = await work()
    latencies.set(name, [...(latencies.get(name) ?? []), performance.now() - startMs])
    return value
  }
  return { latencies, timed }
}

function endJob({ record, timed }, { task, node }) {
  return timed('release', () => record.releaseUses({ task, node }, record.nowMs()))
}

async function runJob({ record, timed, sums }, { task, dataset, node }) {
  const lease = { task, holder: { kind: 'slurm', jobId: task }, expiresAtMs: null }
  const asked = { dataset: dataset.name, node, lease }
  sums.asked += dataset.bytes
  if (await timed('leaseReady', () => record.leaseReady(asked, record.nowMs()))) {
    sums.hits += 1
    return
  }
  const source = { name: dataset.name, source: `s3://bucket/${dataset.name}/`, include: [], exclude: [] }
  const directoryOf = (copyId) => `/cache/staging/${copyId}`
  const staging = { ...asked, stager: lease, origin: 's3', isRefresh: false, source, directoryOf }
  const joined = await timed('joinOrReserve', () => record.joinOrReserve(staging, record.nowMs()))
  if (joined.outcome !== 'stage') {
    sums.hits += 1 // another job stages it or just did: this one waits and reads nothing
    return
  }
  const { copy, stageLeaseId, leaseId } = joined
  const of = { copyId: copy.copyId, stageLeaseId }
  if (!(await admit({ record, timed }, of, dataset.bytes))) {
    sums.refused += 1
    await record.endStaging({ ...of, useLeaseId: leaseId, isForgotten: true }, record.nowMs())
    return
  }
  const looked = { dataset: dataset.name, states: ['ready'] }
  const peers = await timed('find peers', () => record.listCopies(looked, record.nowMs()))
  sums.misses += dataset.bytes
  if (peers.length === 0) sums.fromStore += dataset.bytes
  const directory = `/cache/copies/${dataset.name}`
  const published = { ...of, reason: 'simulated', detail: {}, directory, path: `${directory}/files` }
  const charged = { chargedBytes: dataset.bytes, chargedInodes: 1000 }
  await timed('markReady', () => record.markReady({ ...published, ...charged }, record.nowMs()))
}

/** Evicts as the record says until the copy may be staged; false where it never may. */
async function admit({ record, timed }, of, bytes) {
  const listing = { ...of, version: 'v1', contentBytes: bytes, chargedBytes: bytes, ...SIZES }
  const request = { datasets: 1, bytes, inodes: 1000 }
  const plan = (copies) =>
    planAdmission({ policy: { maxPercent: 80 }, disk: DISK, copies, request, requestCopyId: of.copyId })
  for (;;) {
    const admission = await timed('admit', () => record.admit(listing, plan, record.nowMs()))
    if (admission.outcome === 'refuse') return false
    const victims = (admission.plan?.victims ?? []).map(({ copy }) => copy)
    for (const { copyId } of admission.outcome === 'wait' ? admission.evicting : victims)
      await timed('finishEviction', () => record.finishEviction(copyId, record.nowMs()))
    if (admission.outcome === 'admit') return true
  }
}
