// What a warm `dsc prepare` costs as a whole process beside `node -e 0`, in turn, in time of the processors: at the door
// of a service and in a cache of one's own, with a record in SQLite and in a PostgreSQL that asks for a password. The bar
// at the door is 1.35. With DSC_BIN=FILE, of the executable that `npm run package` makes.
import { existsSync, mkdirSync, readFileSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'
import pg from 'pg'
import { startPostgresServer } from '../../dist/testing/postgres-server.js'
import { DSC as PACKAGE, runTimed, startServer, timeInTurn } from './harness/processes.mjs'
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
    const [url, urlOfService] = await askForPassword([
      await postgres.makeDatabase('tcp'),
      await postgres.makeDatabase('tcp'),
    ])
    const toSqlite = (folder) => `sqlite://${folder}/record.db`
    const sqlite = { cwd: makeNode(bench, 'sqlite', toSqlite) }
    const server = { cwd: makeNode(bench, 'postgres', () => url) }
    const door = await startService(bench, 'door-sqlite', toSqlite)
    const doorOfServer = await startService(bench, 'door-postgres', () => urlOfService)
    const calls = {
      '`node -e 0`': { words: [process.execPath, '-e', '0'], ...sqlite },
      'door, SQLite, `--task`': { words: WITH_TASK, ...door },
      'door, SQLite, held by a process': { words: PREPARE, ...door },
      'door, PostgreSQL, `--task`': { words: WITH_TASK, ...doorOfServer },
      'door, PostgreSQL, held by a process': { words: PREPARE, ...doorOfServer },
      'SQLite, `--task`': { words: WITH_TASK, ...sqlite },
      'SQLite, held by a process': { words: PREPARE, ...sqlite },
      'SQLite, dsc.yaml written again': { words: PREPARE, ...sqlite, before: writeAgain },
      'SQLite, first call after dsc.yaml was edited': { words: PREPARE, ...sqlite, before: edit },
      'PostgreSQL with SCRAM, `--task`': { words: WITH_TASK, ...server },
      'PostgreSQL with SCRAM, held by a process': { words: PREPARE, ...server },
    }
    const times = timeInTurn(calls, bench.given, { ofProcessors: true })
    bench.section('warm prepare', formatTimes(times, 'call', 'ms of processors'))
  },
}

/** Starts the service of a node with a staged dataset. Returns how a user without any configuration calls dsc there. */
async function startService(bench, name, recordOf) {
  const folder = makeNode(bench, name, recordOf, { agent: { listen: '127.0.0.1:0', door: 'run/dsc.sock' } })
  const env = { ...process.env, DSC_DOOR: join(folder, 'run/dsc.sock') }
  startServer(bench, [...DSC, 'agent', '--config', join(folder, 'dsc.yaml')], { cwd: folder })
  const cwd = bench.makeFolder('user')
  for (let left = 100; !existsSync(env.DSC_DOOR); left--) {
    if (left === 0) throw new Error(`there is no door at ${env.DSC_DOOR}`)
    await sleep(200)
  }
  return { cwd, env }
}

/** A folder with a dsc.yaml of its own, whose dataset is staged. */
export function makeNode(bench, name, recordOf, more = {}) {
  const folder = bench.makeFolder(name)
  const data = join(folder, 'data')
  mkdirSync(data)
  makeFiles(data, { objects: 100, bytes: 16, pathOf: (index) => `${index}.txt` })
  const path = writeSettings(
    folder,
    { data: { source: `${pathToFileURL(data)}/` } },
    { record: recordOf(folder), ...more },
  )
  // A dsc.yaml that changed within the last two seconds is parsed anew: it could change again in the same tick.
  utimesSync(path, new Date(0), new Date(0))
  runTimed(WITH_TASK, { cwd: folder })
  return folder
}

/** Makes the server of these databases ask for a password by SCRAM, as servers do. Returns the URLs with it. */
async function askForPassword(urls) {
  const client = new pg.Client({ connectionString: urls[0] })
  await client.connect()
  await client.query(`ALTER USER dsc PASSWORD 'secret'`)
  const { rows } = await client.query('SHOW hba_file')
  writeFileSync(rows[0].hba_file, 'host all all 127.0.0.1/32 scram-sha-256\n')
  await client.query('SELECT pg_reload_conf()')
  await client.end()
  return urls.map((url) => url.replace('dsc@', 'dsc:secret@'))
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
