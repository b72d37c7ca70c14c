// What a warm `dsc prepare` costs as a whole process, beside `node -e 0`, in turn. Usage: npm run bench:warm
// With DSC_BIN=<file>, of the executable file that `npm run package` makes.
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { cpus, tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import pg from 'pg'
import { startPostgresServer } from '../../dist/testing/postgres-server.js'

const RUNS = Number(process.argv[2] ?? 20)
const DSC = process.env.DSC_BIN
  ? [process.env.DSC_BIN]
  : [process.execPath, fileURLToPath(new URL('../../bin/dsc.js', import.meta.url))]
const PREPARE = [...DSC, 'prepare', 'data']
const workspace = mkdtempSync(join(tmpdir(), 'dsc-bench-'))
const postgres = await startPostgresServer({ isDurable: true })

try {
  mkdirSync(join(workspace, 'data'))
  for (let file = 0; file < 100; file++)
    writeFileSync(join(workspace, 'data', `${file}.txt`), `sample ${file}`)
  const sqlite = makeNode('sqlite', `sqlite://${workspace}/record.db`)
  const server = makeNode('postgres', await askForPassword(await postgres.makeDatabase('tcp')))
  const calls = [
    { name: 'node -e 0', words: [process.execPath, '-e', '0'], folder: sqlite },
    { name: 'SQLite, --task', words: [...PREPARE, '--task', 'bench'], folder: sqlite },
    { name: 'SQLite, held by a process', words: PREPARE, folder: sqlite },
    { name: 'SQLite, dsc.yaml touched', words: PREPARE, folder: sqlite, before: touch },
    { name: 'SQLite, dsc.yaml edited', words: PREPARE, folder: sqlite, before: edit },
    { name: 'PostgreSQL, --task', words: [...PREPARE, '--task', 'bench'], folder: server },
    { name: 'PostgreSQL, held by a process', words: PREPARE, folder: server },
  ].map((call) => ({ ...call, wallMs: [] }))
  for (const call of calls) for (let warmUp = 0; warmUp < 3; warmUp++) run(call)
  for (let round = 0; round < RUNS; round++) for (const call of calls) call.wallMs.push(run(call))
  process.stdout.write(
    `${RUNS} runs each, in turn; node ${process.versions.node}, ${cpus().length} × ${cpus()[0].model}\n`,
  )
  const base = median(calls[0].wallMs)
  for (const { name, wallMs } of calls) {
    const ratio = (median(wallMs) / base).toFixed(2)
    process.stdout.write(`${name.padEnd(30)} ${describe(wallMs)}, ${ratio} × node -e 0\n`)
  }
} finally {
  await postgres.close()
  rmSync(workspace, { recursive: true, force: true })
}

/** A folder with a dsc.yaml of its own, whose dataset is staged. */
function makeNode(name, record) {
  const folder = join(workspace, name)
  mkdirSync(folder)
  writeFileSync(
    join(folder, 'dsc.yaml'),
    `record: ${record}\ncache: { root: ${folder}/cache }\n` +
      `datasets: { data: { source: ${pathToFileURL(join(workspace, 'data'))}/ } }\n`,
  )
  run({ words: [...PREPARE, '--task', 'bench'], folder })
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
function touch(folder) {
  const path = join(folder, 'dsc.yaml')
  writeFileSync(path, readFileSync(path))
}

function edit(folder) {
  const path = join(folder, 'dsc.yaml')
  writeFileSync(path, `${readFileSync(path, 'utf8').split('#')[0]}# ${performance.now()}\n`)
}

function run({ words: [program, ...words], folder, before }) {
  before?.(folder)
  const start = performance.now()
  const { status, stderr } = spawnSync(program, words, { cwd: folder, encoding: 'utf8' })
  const wallMs = performance.now() - start
  if (status !== 0) throw new Error(`${words.join(' ')} ended with ${status}: ${stderr}`)
  return wallMs
}

function median(values) {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]
}

function describe(values) {
  const sorted = values.toSorted((a, b) => a - b)
  return `${median(values).toFixed(1)} ms (${sorted[0].toFixed(1)}–${sorted.at(-1).toFixed(1)})`
}
