// How cost grows: commands with 10 to a million copies in the record. A node has 1,000 of them, those of the own node with
// folders on disk; a dataset is on up to 50 nodes; every 20th copy has a lease, some are abandoned stagings. And the
// listing commands with 200 nodes × 500 datasets, a lease on every third copy and 100,000 events.
// --parts of copies,nodes; --copies: how many, in turn; --per-node
import { linkSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import Database from 'better-sqlite3'
import { startPostgresServer } from '../../dist/testing/postgres-server.js'
import { fillRecord, inserter, leaseInserter } from './harness/filled-record.mjs'
import { DSC, runOften, runTimed } from './harness/processes.mjs'
import { makeFiles, writeSettings } from './harness/stores.mjs'
import { count, median, table } from './harness/tables.mjs'

const PREPARE = ['prepare', 'data', '--task', 'bench']
/** The dataset of copy 9. */
const ASKED = 'data-11271'
const COMMANDS = {
  '`prepare`, copy ready': () => PREPARE,
  '`prepare --refresh`, nothing new': () => [...PREPARE, '--refresh'],
  '`prepare` of another, evicts one': (round) => ['prepare', `next-${round}`, '--task', 'bench'],
  '`cleanup`, nothing to do': () => ['cleanup'],
  '`why` of a dataset': () => ['why', ASKED],
  '`status`': () => ['status'],
  '`status --json`': () => ['status', '--json'],
}
/** A command that takes longer runs once. */
const LONG_SECONDS = 2
const LEASE_MS = 100 * 3_600_000
/** Datasets that there are at most. */
const DATASETS = 20_000
const LISTING = [
  'status',
  'status --all',
  'status --json',
  'why data-7',
  'leases --json',
  'history --json --limit 100000',
]

export const benchmark = {
  page: 'growth.md',
  options: {
    ...{ rounds: 3, parts: 'copies,nodes', nodes: 200, datasets: 500 },
    ...{ copies: '10,1000,100000,1000000', 'per-node': 1000 },
  },
  smoke: { rounds: 1, copies: '10,20,30,40', 'per-node': 10, nodes: 3, datasets: 10 },
  async run(bench) {
    const parts = { copies: growingCopies, nodes: manyNodes }
    for (const part of bench.given.parts.split(',')) await parts[part](bench)
  },
}

/** Of the processors, to which other programs add less than to the wall clock. */
function describe(runs) {
  const middle = median(runs.map(({ cpuSeconds }) => cpuSeconds))
  const peak = Math.max(...runs.map(({ rssMiB }) => rssMiB)).toFixed(0)
  return `${middle < 1 ? `${(middle * 1000).toFixed(0)} ms` : `${middle.toFixed(1)} s`}, ${peak} MiB`
}

function growingCopies(bench) {
  const sizes = bench.given.copies.split(',').map(Number)
  const folders = sizes.map((copies) => buildCopies(bench, copies))
  const rows = Object.entries(COMMANDS).map(([name, wordsOf]) => [
    name,
    ...folders.map((cwd) => {
      const run = (round) => runTimed([...DSC, ...wordsOf(round)], { cwd, output: join(cwd, 'output') })
      const first = run(0) // warms up
      if (first.cpuSeconds > LONG_SECONDS) return describe([first])
      return describe(Array.from({ length: bench.given.rounds }, (_, round) => run(round + 1)))
    }),
  ])
  bench.section('copies', table(['command', ...sizes.map((size) => `${count(size)} copies`)], rows))
}

/** A real copy of a small source, and its row as often as asked for, under other names and on other nodes. */
function buildCopies(bench, copies) {
  const folder = bench.makeFolder('copies')
  const perNode = Math.min(copies, bench.given['per-node'])
  makeFiles(join(folder, 'data'), { objects: 10, bytes: 16, pathOf: (index) => `${index}.txt` })
  const source = `${pathToFileURL(join(folder, 'data'))}/`
  const others = Array.from({ length: bench.given.rounds + 1 }, (_, round) => [`next-${round}`, { source }])
  const datasets = { data: { source }, ...Object.fromEntries(others) }
  writeSettings(folder, datasets, { node: 'bench', cache: { root: 'cache', maxDatasets: perNode } })
  runTimed([...DSC, ...PREPARE], { cwd: folder })
  const database = new Database(join(folder, 'record.db'))
  database.pragma('synchronous = OFF')
  database.pragma('cache_size = -2000000') // KiB
  database.transaction(() => insertCopies(database, { folder, copies, perNode }))()
  database.close()
  return folder
}

function insertCopies(database, { folder, copies, perNode }) {
  // These columns are generated.
  const [{ has_source: _, is_striped: __, source_url: ___, ...row }] = database
    .prepare('SELECT * FROM copies')
    .all()
  const [node] = database.prepare('SELECT * FROM nodes').all()
  const insertNode = inserter(database, 'nodes', Object.keys(node).join(', '))
  const insertCopy = inserter(database, 'copies', Object.keys(row).join(', '))
  const insertLease = leaseInserter(database)
  const source = JSON.parse(row.source)
  const usedAtMs = row.last_used_at_ms - copies
  for (let index = 1; index < copies; index++) {
    const name = index < perNode ? 'bench' : `gpu-${Math.floor(index / perNode)}`
    if (index % perNode === 0) insertNode.run(...Object.values({ ...node, node: name, identity: null }))
    const dataset = `data-${(index * 7919) % DATASETS}` // a node has none twice
    const id = `copy-${index}`
    const directory = join(folder, 'cache', 'copies', dataset, `${row.version.slice(0, 16)}-${index}`)
    const path = join(directory, 'files')
    if (name === 'bench') {
      mkdirSync(path, { recursive: true })
      linkSync(join(row.directory, 'manifest.db'), join(directory, 'manifest.db'))
    }
    const state = name !== 'bench' && index % 10_007 === 0 ? 'staging' : 'ready'
    const own = {
      copy_id: id,
      dataset,
      node: name,
      state,
      source: JSON.stringify({ ...source, name: dataset, source: `${source.source}${dataset}/` }),
    }
    const used = { directory, path, last_used_at_ms: usedAtMs + index }
    insertCopy.run(...Object.values({ ...row, ...own, ...used }))
    if (index % 20 === 0)
      insertLease.run(id, id, 'use', 'job', '{"kind":"ttl"}', usedAtMs, usedAtMs, usedAtMs + LEASE_MS, name)
  }
}

async function manyNodes(bench) {
  const server = await startPostgresServer()
  bench.after(() => server.close())
  const cwd = bench.makeFolder('nodes')
  const sqlite = `sqlite://${cwd}/record.db`
  await fillRecord(join(cwd, 'record.db'), {
    nodes: bench.given.nodes,
    datasets: bench.given.datasets,
    isLeased: true,
  })
  writeSettings(cwd, { 'data-7': { source: `file://${cwd}/` } }, { node: 'bench' })
  const postgres = await server.makeDatabase()
  const options = (record) => ({ cwd, env: { ...process.env, DSC_RECORD: record } })
  runTimed([...DSC, 'record', 'migrate', sqlite, postgres], options(sqlite))
  const rows = LISTING.map((words) => [
    `\`${words}\``,
    ...[sqlite, postgres].map((record) => {
      const runs = runOften(bench.given.rounds, [...DSC, ...words.split(' ')], options(record))
      const peak = Math.max(...runs.map(({ rssMiB }) => rssMiB)).toFixed(0)
      return `${median(runs.map(({ seconds }) => seconds)).toFixed(2)} s, ${peak} MiB`
    }),
  ])
  bench.section('nodes', table(['command', 'SQLite', 'PostgreSQL'], rows))
}
