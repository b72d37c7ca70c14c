// What a warm `dsc prepare` costs as a whole process beside `node -e 0`, in turn: with a record in SQLite and in a
// PostgreSQL that asks for a password. With DSC_BIN=FILE, of the executable that `npm run package` makes.
import { mkdirSync, readFileSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import pg from 'pg'
import { startPostgresServer } from '../../dist/testing/postgres-server.js'
import { DSC as PACKAGE, runTimed, timeInTurn } from './harness/processes.mjs'
import { makeFiles, writeSettings } from './harness/stores.mjs'
import { formatTimes } from './harness/tables.mjs'

const DSC = process.env.DSC_BIN ? [process.env.DSC_BIN] : PACKAGE
const PREPARE = [...DSC, 'prepare', 'data']
const WITH_TASK = [...PREPARE, '--task', 'bench']

export const benchmark = {
  page: 'growth.md',
  options: { rounds: 20 },
  smoke: { rounds: 1 },
  async run(bench) {
    const postgres = await startPostgresServer({ isDurable: true })
    bench.after(() => postgres.close())
    const url = await askForPassword(await postgres.makeDatabase('tcp'))
    const sqlite = makeNode(bench, 'sqlite', (folder) => `sqlite://${folder}/record.db`)
    const server = makeNode(bench, 'postgres', () => url)
    const calls = {
      '`node -e 0`': { words: [process.execPath, '-e', '0'], cwd: sqlite },
      'SQLite, `--task`': { words: WITH_TASK, cwd: sqlite },
      'SQLite, held by a process': { words: PREPARE, cwd: sqlite },
      'SQLite, dsc.yaml written again': { words: PREPARE, cwd: sqlite, before: writeAgain },
      'SQLite, first call after dsc.yaml was edited': { words: PREPARE, cwd: sqlite, before: edit },
      'PostgreSQL with SCRAM, `--task`': { words: WITH_TASK, cwd: server },
      'PostgreSQL with SCRAM, held by a process': { words: PREPARE, cwd: server },
    }
    bench.section('warm prepare', formatTimes(timeInTurn(calls, bench.given), 'call'))
  },
}

/** A folder with a dsc.yaml of its own, whose dataset is staged. */
export function makeNode(bench, name, recordOf) {
  const folder = bench.makeFolder(name)
  const data = join(folder, 'data')
  mkdirSync(data)
  makeFiles(data, { objects: 100, bytes: 16, pathOf: (index) => `${index}.txt` })
  const path = writeSettings(
    folder,
    { data: { source: `${pathToFileURL(data)}/` } },
    { record: recordOf(folder) },
  )
  // A dsc.yaml that changed within the last two seconds is parsed anew: it could change again in the same tick.
  utimesSync(path, new Date(0), new Date(0))
  runTimed(WITH_TASK, { cwd: folder })
  return folder
}

/** Makes the server ask for a password by SCRAM, as servers do. Returns the URL with it. */
async function askForPassword(url) {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  await client.query(`ALTER USER dsc PASSWORD 'secret'`)
  const { rows } = await client.query('SHOW hba_file')
  writeFileSync(rows[0].hba_file, 'host all all 127.0.0.1/32 scram-sha-256\n')
  await client.query('SELECT pg_reload_conf()')
  await client.end()
  return url.replace('dsc@', 'dsc:secret@')
}

/** Writes the same again, as deployment tools do. */
function writeAgain(folder) {
  const path = join(folder, 'dsc.yaml')
  writeFileSync(path, readFileSync(path))
}

function edit(folder) {
  const path = join(folder, 'dsc.yaml')
  writeFileSync(path, `${readFileSync(path, 'utf8').split('#')[0]} # ${performance.now()}\n`)
}
