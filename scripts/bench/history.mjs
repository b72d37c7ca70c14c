// Ten years of metadata: what `history`, `why` and `cleanup` cost when the record holds millions of events.
// --at FOLDER keeps the record, which takes minutes to make, for the next time.
import { existsSync, mkdirSync, statSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import Database from 'better-sqlite3'
import { eventInserter } from './harness/filled-record.mjs'
import { DSC, runOften, runTimed } from './harness/processes.mjs'
import { makeFiles, writeSettings } from './harness/stores.mjs'
import { count, span, table } from './harness/tables.mjs'

const YEARS_MS = 10 * 365.25 * 24 * 3_600_000
const NODES = 200
const KINDS = ['staged', 'leased', 'released', 'leased', 'released', 'leased', 'lease-expired', 'evicted']
const FAILURE = '00c0ffee00c0' // an id that no event has: nothing is as far away
const COMMANDS = {
  '`history`': ['history'],
  '`history data-7`': ['history', 'data-7'],
  '`history --node gone`, a node with one event in the middle': ['history', '--node', 'gone'],
  '`why data-7`': ['why', 'data-7'],
  '`why` of an id that no failure has': ['why', FAILURE],
  '`cleanup` with ten years to forget': ['cleanup'],
}

export const benchmark = {
  options: { events: 10_000_000, datasets: 100_000, rounds: 5, at: '' },
  smoke: { events: 2000, datasets: 20, rounds: 1 },
  run(bench) {
    const { at, events, datasets } = bench.given
    const folder = at ? resolve(at) : bench.folder
    mkdirSync(folder, { recursive: true })
    if (at) bench.after(() => setKept(folder, '92d'))
    if (!existsSync(join(folder, 'record.db'))) build(folder, bench.given)
    // `why` of an id that nobody gave is a mistake of the user, and must be told as fast.
    const options = (words) => ({ cwd: folder, accept: (status) => status === 0 || words.includes(FAILURE) })
    const row = (name, words) => {
      const runs = runOften(bench.given.rounds, [...DSC, ...words], options(words))
      const wallMs = runs.map(({ seconds }) => seconds * 1000)
      return [
        name,
        `${span(wallMs, 0)} ms`,
        `${Math.max(...runs.map(({ rssMiB }) => rssMiB)).toFixed(0)} MiB`,
      ]
    }
    const rows = Object.entries(COMMANDS).map(([name, words]) => row(name, words))
    setKept(folder, '7300d')
    rows.push(row('`cleanup` with nothing to forget', ['cleanup']))
    const bytes = statSync(join(folder, 'record.db')).size
    bench.section(
      'commands',
      `${count(events)} events of ${count(datasets)} datasets, ${(bytes / 2 ** 30).toFixed(2)} GiB at the end.\n`,
      table(['command', 'time', 'peak'], rows),
    )
  },
}

/** How long the history is kept, and what else stands in dsc.yaml. */
function setKept(folder, history) {
  const names = Array.from({ length: 10 }, (_, index) => `data-${index}`)
  const dataset = { source: `${pathToFileURL(join(folder, 'data'))}/` }
  writeSettings(folder, Object.fromEntries(names.map((name) => [name, dataset])), { node: 'bench', history })
}

function build(folder, { events, datasets }) {
  makeFiles(join(folder, 'data'), { objects: 1, bytes: 6, pathOf: () => '1.txt' })
  setKept(folder, '92d')
  runTimed([...DSC, 'prepare', 'data-7', '--task', 'bench'], { cwd: folder })
  const database = new Database(join(folder, 'record.db'))
  database.pragma('synchronous = OFF')
  const insert = eventInserter(database)
  // Indexes are made again at the end: so it takes minutes less.
  const found = `SELECT name, sql FROM sqlite_master WHERE type = 'index' AND tbl_name = 'events' AND sql IS NOT NULL`
  const indexes = database.prepare(found).all()
  for (const { name } of indexes) database.exec(`DROP INDEX ${name}`)
  const firstMs = Date.now() - YEARS_MS
  const insertDataset = database.prepare(
    'INSERT OR IGNORE INTO datasets (name, definition, updated_at_ms) VALUES (?, ?, ?)',
  )
  database.transaction(() => {
    for (let index = 0; index < datasets; index++) {
      const name = `data-${index}`
      insertDataset.run(name, JSON.stringify({ name, source: 's3://b/', include: [], exclude: [] }), firstMs)
    }
    for (let index = 0; index < events; index++) {
      const dataset = (index * 7919) % datasets
      const node = index === events / 2 ? 'gone' : `gpu-${index % NODES}`
      const names = [`data-${dataset}`, `copy-${dataset}-${index % NODES}`, `slurm:${index}`]
      const atMs = Math.round(firstMs + (YEARS_MS * index) / events)
      const why = ['at the request of the job', '{"bytes":1073741824}']
      insert.run(atMs, KINDS[index % KINDS.length], node, ...names, ...why)
    }
  })()
  for (const { sql } of indexes) database.exec(sql)
  database.pragma('wal_checkpoint(TRUNCATE)')
  database.close()
}
