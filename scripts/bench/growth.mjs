// How cost grows: commands with 10, 1,000 and 100,000 copies of one node in the record, each with its folder on disk; and
// with 200 nodes × 500 datasets, a lease on every third copy and 100,000 events.
// --parts of copies,nodes; --copies: how many, in turn
import { linkSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import Database from 'better-sqlite3'
import { startPostgresServer } from '../../dist/testing/postgres-server.js'
import { fillRecord, inserter } from './harness/filled-record.mjs'
import { DSC, runOften, runTimed } from './harness/processes.mjs'
import { makeFiles, writeSettings } from './harness/stores.mjs'
import { count, median, span, table } from './harness/tables.mjs'

const COMMANDS = {
  '`prepare`, copy ready': ['prepare', 'data', '--task', 'bench'],
  '`prepare --refresh`, nothing new': ['prepare', 'data', '--task', 'bench', '--refresh'],
  '`status`': ['status'],
  '`status --json`': ['status', '--json'],
  '`cleanup`, nothing to do': ['cleanup'],
}
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
  options: { rounds: 3, parts: 'copies,nodes', copies: '10,1000,100000', nodes: 200, datasets: 500 },
  smoke: { rounds: 1, copies: '10,20,30', nodes: 3, datasets: 10 },
  async run(bench) {
    const parts = { copies: growingCopies, nodes: manyNodes }
    for (const part of bench.given.parts.split(',')) await parts[part](bench)
  },
}

function describe(runs) {
  const wallMs = runs.map(({ seconds }) => seconds * 1000)
  return `${span(wallMs, 0)} ms, ${Math.max(...runs.map(({ rssMiB }) => rssMiB)).toFixed(0)} MiB`
}

function growingCopies(bench) {
  const sizes = bench.given.copies.split(',').map(Number)
  const folders = sizes.map((copies) => buildCopies(bench.makeFolder('copies'), copies))
  const rows = Object.entries(COMMANDS).map(([name, words]) => [
    name,
    ...folders.map((cwd) => describe(runOften(bench.given.rounds, [...DSC, ...words], { cwd }))),
  ])
  bench.section('copies', table(['command', ...sizes.map((size) => `${count(size)} copies`)], rows))
}

/** A real copy of a small source, and its row and folder as often as asked for, under other names. */
function buildCopies(folder, copies) {
  makeFiles(join(folder, 'data'), { objects: 10, bytes: 16, pathOf: (index) => `${index}.txt` })
  writeSettings(folder, { data: { source: `${pathToFileURL(join(folder, 'data'))}/` } }, { node: 'bench' })
  runTimed([...DSC, ...COMMANDS['`prepare`, copy ready']], { cwd: folder })
  const database = new Database(join(folder, 'record.db'))
  // has_source and is_striped are generated.
  const [{ has_source: _, is_striped: __, ...row }] = database.prepare('SELECT * FROM copies').all()
  const insert = inserter(database, 'copies', Object.keys(row).join(', '))
  database.transaction(() => {
    for (let index = 1; index < copies; index++) {
      const dataset = `data-${index}`
      const directory = join(folder, 'cache', 'copies', dataset, `${row.version.slice(0, 16)}-${index}`)
      const path = join(directory, 'files')
      mkdirSync(path, { recursive: true })
      // A file system may allow only 65,000 names for one file.
      if (index < 49_999) linkSync(join(row.directory, 'manifest.db'), join(directory, 'manifest.db'))
      else writeFileSync(join(directory, 'manifest.db'), '')
      const own = { copy_id: `copy-${index}`, dataset, directory, path, last_used_at_ms: index }
      insert.run(...Object.values({ ...row, ...own }))
    }
  })()
  database.close()
  return folder
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
