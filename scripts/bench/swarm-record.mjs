// What the record must bear when many nodes begin to stage one dataset together, and what a real PostgreSQL on this machine
// bears: directly and through PgBouncer with few connections of its own.
// Usage: npm run bench:swarm:record -- [nodes,nodes,…]     (default: 256,1024,4096)

import { planRenewal } from '../../dist/cache/leases/keep-stage-lease.js'
import { openPostgresRecord } from '../../dist/records/postgres/record-store.js'
import { findPeers } from '../../dist/sources/peer/find-peers.js'
import { findStagers } from '../../dist/sources/peer/find-stagers.js'
import { planNextLook } from '../../dist/sources/peer/neighbours.js'
import { startPgBouncer } from '../../dist/testing/pgbouncer.js'
import { startPostgresServer } from '../../dist/testing/postgres-server.js'

const SIZES = (process.argv[2] ?? '256,1024,4096').split(',').map(Number)
const POOLS = 4
const CONNECTIONS = 8
/** Callers at once. */
const CLIENTS = 64
const RENEWALS = 4000
const LOOKS = 12
const DATASET = { name: 'flowers', source: 's3://bench/flowers/', include: [], exclude: [] }

const ends = []
const server = await startPostgresServer({ isDurable: true })
try {
  const through = await startPgBouncer({ after: (end) => ends.unshift(end) }, server.port)
  process.stdout.write(
    '| nodes | way | joins a second | renewals a second | needed | one look, ms | looks a second | needed | ready a second |\n' +
      '|--:|---|--:|--:|--:|--:|--:|--:|--:|\n',
  )
  for (const nodes of SIZES)
    for (const [way, lead] of [
      ['direct', (url) => url],
      ['PgBouncer, 5 connections', through],
    ]) {
      if (lead === undefined) continue
      const url = await server.makeDatabase('tcp')
      const records = await Promise.all(
        Array.from({ length: POOLS }, () => openPostgresRecord(lead(url), { connections: CONNECTIONS })),
      )
      process.stdout.write(
        `| ${[nodes.toLocaleString('en'), way, ...(await measure(nodes, records))].join(' | ')} |\n`,
      )
      await Promise.all(records.map((record) => record.close()))
    }
} finally {
  for (const end of ends) await end()
  await server.close()
}

async function measure(nodes, records) {
  const names = Array.from({ length: nodes }, (_, index) => `n${index}`)
  await atOnce(names, records, saveNode)
  const turns = []
  const joins = await atOnce(names, records, async (record, node) => {
    const turn = await record.joinOrReserve(joinRequest(record, node), record.nowMs())
    turns.push({ ...turn, node })
  })
  const renewals = await atOnce(
    Array.from({ length: RENEWALS }, (_, index) => turns[index % turns.length]),
    records,
    (record, { copy, stageLeaseId }) => {
      const progress = {
        copyId: copy.copyId,
        stageLeaseId,
        writtenBytes: 1,
        expiresAtMs: record.nowMs() + 120_000,
      }
      return record.reportProgress(progress, record.nowMs())
    },
  )
  const look = (record, node) => {
    const search = { record, node, dataset: DATASET }
    return Promise.all([findPeers(search), findStagers(search)])
  }
  const aloneMs = []
  for (let index = 0; index < 3; index++) {
    const startMs = performance.now()
    await look(records[0], names[index])
    aloneMs.push(performance.now() - startMs)
  }
  const looks = await atOnce(names.slice(0, LOOKS), records, look)
  const ready = await atOnce(turns, records, markReady)
  const neededLooks = (1000 * nodes) / planNextLook(100, nodes)
  const neededRenewals = (1000 * nodes) / planRenewal(nodes)
  return [joins, renewals, neededRenewals, Math.min(...aloneMs), looks, neededLooks, ready].map((value) =>
    Math.round(value).toLocaleString('en'),
  )
}

/** Does `work` for each of `items`, as many at once as there are clients. Returns how many a second. */
async function atOnce(items, records, work) {
  const startMs = performance.now()
  const queue = items.values()
  await Promise.all(
    Array.from({ length: CLIENTS }, async (_, client) => {
      for (const item of queue) await work(records[client % records.length], item)
    }),
  )
  return (1000 * items.length) / (performance.now() - startMs)
}

function saveNode(record, node) {
  const disk = { capacityBytes: 2 ** 40, freeBytes: 2 ** 40, inodesTotal: 0, inodesFree: 0 }
  const agent = { url: `http://${node}:7070`, seenAtMs: record.nowMs(), metrics: {} }
  return record.saveNode({ node, cacheRoot: '/cache', policy: {}, disk, seenAtMs: record.nowMs(), agent })
}

function joinRequest(record, node) {
  const lease = { task: `bench ${node}`, holder: { kind: 'ttl' }, expiresAtMs: record.nowMs() + 3_600_000 }
  return {
    dataset: DATASET.name,
    node,
    lease,
    stager: lease,
    source: DATASET,
    origin: 's3',
    directoryOf: (copyId) => `/cache/staging/${copyId}`,
    isRefresh: false,
  }
}

async function markReady(record, { copy, stageLeaseId }) {
  const listing = { version: 'v1', files: 8, contentBytes: 2 ** 28, chargedBytes: 2 ** 28, chargedInodes: 10 }
  const { copyId } = copy
  await record.admit(
    { copyId, stageLeaseId, ...listing },
    () => ({ outcome: 'admit', plan: { victims: [] } }),
    record.nowMs(),
  )
  const published = {
    copyId,
    stageLeaseId,
    reason: 'bench',
    detail: {},
    directory: '/cache/d',
    path: '/cache/d/files',
  }
  await record.markReady({ ...published, chargedBytes: 2 ** 28, chargedInodes: 10 }, record.nowMs())
}
