// The record and the policy under the load of a whole cluster: simulated nodes and jobs, the real PostgreSQL record,
// the real admission. Usage: npm run bench:cluster -- [nodes] [jobs] [clients]     (full: 1000 20000 32)

import { writeFileSync } from 'node:fs'
import { cpus, loadavg } from 'node:os'
import { planAdmission } from '../../dist/policy/plan-admission.js'
import { openPostgresRecord } from '../../dist/records/postgres/record-store.js'
import { startPostgresServer } from '../../dist/testing/postgres-server.js'

const [NODES = 1000, JOBS = 20_000, CLIENTS = 32] = process.argv.slice(2).map(Number)
const PROCESS_CLIENTS = 4
const GIB = 1024 ** 3
const CAPACITY = 4096 * GIB
const SEED = 7
const random = mulberry32(SEED)

// 300 datasets of 20 to 800 GiB, asked for by Zipf's law: a few are used by most jobs.
const datasets = Array.from({ length: 300 }, (_, index) => ({
  name: `d${index}`,
  bytes: Math.round((20 + 780 * random() ** 2) * GIB),
  weight: 1 / (index + 1) ** 0.9,
}))
const totalWeight = datasets.reduce((sum, { weight }) => sum + weight, 0)
const jobs = Array.from({ length: JOBS }, (_, index) => ({
  task: `job-${index}`,
  dataset: pickDataset(),
  node: `node-${Math.floor(random() * NODES)}`,
}))

const server = await startPostgresServer({ isDurable: true })
const retries = { conflict: 0, lost: 0 }
const latencies = new Map()
try {
  const url = await server.makeDatabase()
  const onRetry = (reason) => {
    retries[reason] += 1
  }
  const records = await Promise.all(
    Array.from({ length: PROCESS_CLIENTS }, () => openPostgresRecord(url, { onRetry, connections: 8 })),
  )
  const sums = { hits: 0, fromPeers: 0, fromStore: 0, refused: 0, asked: 0, misses: 0 }
  const held = [] // a job ends when as many others as there are nodes have begun after it
  const queue = jobs.values()
  const startedMs = performance.now()
  await Promise.all(
    Array.from({ length: CLIENTS }, async (_, client) => {
      const record = records[client % PROCESS_CLIENTS]
      for (const job of queue) {
        await runJob(record, job, sums)
        held.push(job)
        while (held.length > NODES) {
          const over = held.shift()
          await timed('release', () =>
            record.releaseUses({ task: over.task, node: over.node }, record.nowMs()),
          )
        }
      }
    }),
  )
  const seconds = (performance.now() - startedMs) / 1000
  const copies = await timed('listCopies (all)', () => records[0].listCopies({}, records[0].nowMs()))
  const leases = await records[0].listLeases({})
  report(seconds, sums, copies.length, leases.length)
  await Promise.all(records.map((record) => record.close()))
} finally {
  await server.close()
}

async function runJob(record, { task, dataset, node }, sums) {
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
        ...{ dataset: dataset.name, node, lease, stager: lease, origin: 's3', isRefresh: false },
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
          ...{ copyId, stageLeaseId: joined.stageLeaseId, version: 'v1', files: 1000 },
          ...{ contentBytes: dataset.bytes, chargedBytes: dataset.bytes, chargedInodes: 1000 },
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
        ...{ copyId, stageLeaseId: joined.stageLeaseId, reason: 'simulated', detail: {} },
        ...{ directory: `/cache/copies/${dataset.name}`, path: `/cache/copies/${dataset.name}/files` },
        ...{ chargedBytes: dataset.bytes, chargedInodes: 1000 },
      },
      record.nowMs(),
    ),
  )
}

function report(seconds, sums, copies, leases) {
  const operations = [...latencies.values()].reduce((sum, values) => sum + values.length, 0)
  const tib = (bytes) => `${(bytes / 1024 ** 4).toFixed(1)} TiB`
  const rows = [...latencies].map(([name, values]) => {
    const sorted = values.toSorted((a, b) => a - b)
    const at = (share) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))].toFixed(2)
    return `| ${name} | ${values.length} | ${at(0.5)} | ${at(0.99)} |`
  })
  const bars = [
    ['every job downloads', sums.asked],
    ['LRU per node, no peers', sums.misses],
    ['dsc (LRU and peers)', sums.fromStore],
  ].map(([name, bytes]) => {
    const width = Math.max(1, Math.round((40 * bytes) / sums.asked))
    return `${name.padEnd(24)} ${'█'.repeat(width)} ${tib(bytes)}`
  })
  const text = `# A cluster's record under load

\`npm run bench:cluster -- ${NODES} ${JOBS} ${CLIENTS}\`: ${NODES} simulated nodes of 4 TiB (80 % allowed), ${JOBS} jobs
over 300 datasets of 20 to 800 GiB chosen by Zipf's law (seed ${SEED}), each job on a random node; the real record in a
real PostgreSQL 18 with fsync on this machine, ${CLIENTS} jobs in flight over ${PROCESS_CLIENTS} pools of one process. Copying itself
is simulated and takes no time.

Measured on ${cpus().length} × ${cpus()[0].model}, Node ${process.versions.node}, load average before and during ${loadavg()[2].toFixed(1)} and ${loadavg()[0].toFixed(1)}
(database and clients share these cores; other work ran beside where the load is above ${cpus().length}).

- ${Math.round(operations / seconds)} operations/s (${operations} in ${seconds.toFixed(1)} s); ${retries.conflict} conflicts repeated (${((100 * retries.conflict) / operations).toFixed(2)} %), ${retries.lost} connections lost
- at the end ${copies} copies, ${leases} leases; hits ${((100 * sums.hits) / JOBS).toFixed(1)} % of jobs, refused ${sums.refused}

| operation | count | median ms | p99 ms |
|---|---|---|---|
${rows.join('\n')}

Bytes read from the store:

\`\`\`
${bars.join('\n')}
\`\`\`
`
  process.stdout.write(text)
  writeFileSync(new URL('../../docs/benchmarks/cluster.md', import.meta.url), text)
}

async function timed(name, work) {
  const startMs = performance.now()
  const value = await work()
  const values = latencies.get(name) ?? []
  latencies.set(name, values)
  values.push(performance.now() - startMs)
  return value
}

function pickDataset() {
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
