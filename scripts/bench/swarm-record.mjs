// What the record must bear when many nodes begin to stage one dataset together, and what a real PostgreSQL on this
// machine bears: directly, and through PgBouncer with few connections of its own.
import { planRenewal } from '../../dist/cache/leases/keep-stage-lease.js'
import { openPostgresRecord } from '../../dist/records/postgres/record-store.js'
import { findPeers } from '../../dist/sources/peer/find-peers.js'
import { findStagers } from '../../dist/sources/peer/find-stagers.js'
import { startPgBouncer } from '../../dist/testing/pgbouncer.js'
import { startPostgresServer } from '../../dist/testing/postgres-server.js'
import { count, table } from './harness/tables.mjs'

const POOLS = 4
const CONNECTIONS = 8
/** Callers at once. */
const CLIENTS = 64
const LOOKS = 12
const DATASET = { name: 'flowers', source: 's3://bench/flowers/', include: [], exclude: [] }

export const benchmark = {
  page: 'swarm.md',
  options: { nodes: '256,1024,4096', renewals: 4000 },
  smoke: { nodes: '8', renewals: 40 },
  async run(bench) {
    const server = await startPostgresServer({ isDurable: true })
    bench.after(() => server.close())
    const ways = {
      direct: (url) => url,
      'PgBouncer, 5 connections': await startPgBouncer(bench, server.port),
    }
    const rows = []
    for (const nodes of bench.given.nodes.split(',').map(Number))
      for (const [way, lead] of Object.entries(ways)) {
        if (lead === undefined) continue
        const url = lead(await server.makeDatabase('tcp'))
        const options = { connections: CONNECTIONS }
        const records = await Promise.all(
          Array.from({ length: POOLS }, () => openPostgresRecord(url, options)),
        )
        rows.push([count(nodes), way, ...(await measure(nodes, records, bench.given.renewals))])
        await Promise.all(records.map((record) => record.close()))
      }
    const heads = ['nodes', 'way', 'joins/s', 'renewals/s', 'needed', 'one look, ms', 'looks/s']
    bench.section('record', table(heads, rows, { texts: 2 }))
  },
}

async function measure(nodes, records, renewalCount) {
  const names = Array.from({ length: nodes }, (_, index) => `n${index}`)
  await atOnce(names, records, saveNode)
  const turns = []
  const joins = await atOnce(names, records, async (record, node) => {
    turns.push(await record.joinOrReserve(joinRequest(record, node), record.nowMs()))
  })
  const renewed = Array.from({ length: renewalCount }, (_, index) => turns[index % turns.length])
  const renewals = await atOnce(renewed, records, (record, turn) => {
    const progress = { ...copyOf(turn), writtenBytes: 1, expiresAtMs: record.nowMs() + 120_000 }
    return record.reportProgress(progress, record.nowMs())
  })
  const look = (record, node) => {
    const search = { record, node, dataset: DATASET }
    return Promise.all([findPeers(search), findStagers(search, new Set(names))])
  }
  const aloneMs = []
  for (const name of names.slice(0, 3)) {
    const startMs = performance.now()
    await look(records[0], name)
    aloneMs.push(performance.now() - startMs)
  }
  const looks = await atOnce(names.slice(0, LOOKS), records, look)
  const needed = (1000 * nodes) / planRenewal(nodes)
  return [joins, renewals, needed, Math.min(...aloneMs), looks].map(count)
}

/** Does `work` for each of `items`, as many at once as there are clients. Returns how many a second. */
async function atOnce(items, records, work) {
  const startMs = performance.now()
  const queue = items.values()
  const client = async (_, index) => {
    for (const item of queue) await work(records[index % records.length], item)
  }
  await Promise.all(Array.from({ length: CLIENTS }, client))
  return (1000 * items.length) / (performance.now() - startMs)
}

function saveNode(record, node) {
  const disk = { capacityBytes: 2 ** 40, freeBytes: 2 ** 40, inodesTotal: 0, inodesFree: 0 }
  const agent = { url: `http://${node}:7070`, seenAtMs: record.nowMs(), metrics: {} }
  return record.saveNode({ node, cacheRoot: '/cache', policy: {}, disk, seenAtMs: record.nowMs(), agent })
}

function joinRequest(record, node) {
  const lease = { task: `bench ${node}`, holder: { kind: 'ttl' }, expiresAtMs: record.nowMs() + 3_600_000 }
  const how = { origin: 's3', directoryOf: (copyId) => `/cache/staging/${copyId}`, isRefresh: false }
  return { dataset: DATASET.name, node, lease, stager: lease, source: DATASET, ...how }
}

function copyOf({ copy: { copyId }, stageLeaseId }) {
  return { copyId, stageLeaseId }
}
