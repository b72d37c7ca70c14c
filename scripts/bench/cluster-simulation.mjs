// Simulated nodes and jobs against the real record and the real admission; for cluster.mjs.
import { planAdmission } from '../../dist/policy/plan-admission.js'
import { openPostgresRecord } from '../../dist/records/postgres/record-store.js'
import { startPostgresServer } from '../../dist/testing/postgres-server.js'

export const SEED = 7
export const POOLS = 4
const GIB = 1024 ** 3
const CAPACITY = 4096 * GIB
/** Jobs of the second run, one at a time. */
const QUIET_JOBS = 500

/** Runs `jobs` jobs on `nodes` nodes, `clients` at a time, then some more one at a time. */
export async function simulateCluster(nodes, jobs, clients) {
  const random = mulberry32(SEED)
  // 300 datasets of 20 to 800 GiB, asked for by Zipf's law: a few are used by most jobs.
  const datasets = Array.from({ length: 300 }, (_, index) => ({
    name: `d${index}`,
    bytes: Math.round((20 + 780 * random() ** 2) * GIB),
    weight: 1 / (index + 1) ** 0.9,
  }))
  const totalWeight = datasets.reduce((sum, { weight }) => sum + weight, 0)
  const makeJob = (index) => ({
    task: `job-${index}`,
    dataset: pickDataset(datasets, totalWeight, random),
    node: `node-${Math.floor(random() * nodes)}`,
  })
  const queue = Array.from({ length: jobs }, (_, index) => makeJob(index)).values()
  const server = await startPostgresServer({ isDurable: true })
  try {
    const url = await server.makeDatabase()
    const retries = { conflict: 0, lost: 0 }
    const onRetry = (reason) => {
      retries[reason] += 1
    }
    const records = await Promise.all(
      Array.from({ length: POOLS }, () => openPostgresRecord(url, { onRetry, connections: 8 })),
    )
    const sums = { hits: 0, fromPeers: 0, fromStore: 0, refused: 0, asked: 0, misses: 0 }
    const loaded = createTimer()
    const held = [] // a job ends when as many others as there are nodes have begun after it
    const startedMs = performance.now()
    await Promise.all(
      Array.from({ length: clients }, async (_, client) => {
        const record = records[client % POOLS]
        for (const job of queue) {
          await runJob(record, job, sums, loaded.timed)
          held.push(job)
          while (held.length > nodes) await endJob(record, held.shift(), loaded.timed)
        }
      }),
    )
    const seconds = (performance.now() - startedMs) / 1000
    const quiet = createTimer()
    const ignored = { ...sums }
    for (let index = 0; index < QUIET_JOBS; index++) {
      const job = makeJob(jobs + index)
      await runJob(records[0], job, ignored, quiet.timed)
      await endJob(records[0], job, quiet.timed)
    }
    const copies = await quiet.timed('listCopies (all)', () => records[0].listCopies({}, records[0].nowMs()))
    const leases = await records[0].listLeases({})
    const events = await records[0].listEvents({ limit: 1_000_000 })
    await Promise.all(records.map((record) => record.close()))
    const rows = { copies: copies.length, leases: leases.length, events: events.length }
    return { seconds, sums, retries, rows, loaded: loaded.latencies, quiet: quiet.latencies }
  } finally {
    await server.close()
  }
}

function createTimer() {
  const latencies = new Map()
  const timed = async (name, work) => {
    const startMs = performance.now()
    const value = await work()
    const values = latencies.get(name) ?? []
    latencies.set(name, values)
    values.push(performance.now() - startMs)
    return value
  }
  return { latencies, timed }
}

function endJob(record, { task, node }, timed) {
  return timed('release', () => record.releaseUses({ task, node }, record.nowMs()))
}

async function runJob(record, { task, dataset, node }, sums, timed) {
  const lease = { task, holder: { kind: 'slurm', jobId: task }, expiresAtMs: null }
  sums.asked += dataset.bytes
  const ready = await timed('leaseReady', () =>
    record.leaseReady({ dataset: dataset.name, node, lease }, record.nowMs()),
  )
  if (ready) {
    sums.hits += 1
    return
  }
  const joined = await timed('joinStaging', () =>
    record.joinStaging(
      {
        dataset: dataset.name,
        node,
        lease,
        stager: lease,
        origin: 's3',
        isRefresh: false,
        source: { name: dataset.name, source: `s3://bucket/${dataset.name}/`, include: [], exclude: [] },
        directoryOf: (copyId) => `/cache/staging/${copyId}`,
      },
      record.nowMs(),
    ),
  )
  if (joined.outcome !== 'stage') {
    sums.hits += 1 // another job stages it or just did: this one waits and reads nothing
    return
  }
  const { copyId } = joined.copy
  const request = { datasets: 1, bytes: dataset.bytes, inodes: 1000 }
  const disk = { capacityBytes: CAPACITY, freeBytes: CAPACITY, inodesTotal: 0, inodesFree: 0 }
  for (;;) {
    const admission = await timed('admit', () =>
      record.admit(
        {
          copyId,
          stageLeaseId: joined.stageLeaseId,
          version: 'v1',
          files: 1000,
          contentBytes: dataset.bytes,
          chargedBytes: dataset.bytes,
          chargedInodes: 1000,
        },
        (copies) =>
          planAdmission({ policy: { maxPercent: 80 }, disk, copies, request, requestCopyId: copyId }),
        record.nowMs(),
      ),
    )
    const evicting =
      admission.outcome === 'wait'
        ? admission.evicting
        : (admission.plan?.victims ?? []).map(({ copy }) => copy)
    if (admission.outcome === 'refuse') {
      sums.refused += 1
      const ended = {
        copyId,
        stageLeaseId: joined.stageLeaseId,
        useLeaseId: joined.leaseId,
        isForgotten: true,
      }
      await record.endStaging(ended, record.nowMs())
      return
    }
    for (const copy of evicting) {
      await timed('finishEviction', () => record.finishEviction(copy.copyId, record.nowMs()))
    }
    if (admission.outcome === 'admit') break
  }
  const peers = await timed('find peers', () =>
    record.listCopies({ dataset: dataset.name, states: ['ready'] }, record.nowMs()),
  )
  sums.misses += dataset.bytes
  if (peers.length > 0) sums.fromPeers += dataset.bytes
  else sums.fromStore += dataset.bytes
  await timed('markReady', () =>
    record.markReady(
      {
        copyId,
        stageLeaseId: joined.stageLeaseId,
        reason: 'simulated',
        detail: {},
        directory: `/cache/copies/${dataset.name}`,
        path: `/cache/copies/${dataset.name}/files`,
        chargedBytes: dataset.bytes,
        chargedInodes: 1000,
      },
      record.nowMs(),
    ),
  )
}

function pickDataset(datasets, totalWeight, random) {
  let at = random() * totalWeight
  for (const dataset of datasets) {
    at -= dataset.weight
    if (at <= 0) return dataset
  }
  return datasets[0]
}

function mulberry32(seed) {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let value = Math.imul(state ^ (state >>> 15), 1 | state)
    value = (value + Math.imul(value ^ (value >>> 7), 61 | value)) ^ value
    return ((value ^ (value >>> 14)) >>> 0) / 4_294_967_296
  }
}
