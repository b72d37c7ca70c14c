// How cost grows with the record: `prepare` of a ready copy, `status` and `cleanup` with 10, 1,000 and 100,000
// copies. Every copy has its folder on disk. Usage: npm run bench:growth -- [runs] [copies,copies,…]
import { spawnSync } from 'node:child_process'
import { linkSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { cpus, tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import Database from 'better-sqlite3'

const RUNS = Number(process.argv[2] ?? 5)
const SIZES = (process.argv[3] ?? '10,1000,100000').split(',').map(Number)
const DSC = fileURLToPath(new URL('../../bin/dsc.js', import.meta.url))
const COMMANDS = {
  'prepare, ready': ['prepare', 'data', '--task', 'bench'],
  'prepare --refresh, nothing new': ['prepare', 'data', '--task', 'bench', '--refresh'],
  status: ['status'],
  'status --json': ['status', '--json'],
  'cleanup, nothing to do': ['cleanup'],
}

const rows = []
for (const copies of SIZES) {
  const workspace = mkdtempSync(join(tmpdir(), 'dsc-bench-'))
  try {
    build(workspace, copies)
    for (const [name, words] of Object.entries(COMMANDS)) {
      run(workspace, words)
      const runs = Array.from({ length: RUNS }, () => run(workspace, words))
      rows.push({ copies, name, runs })
      process.stdout.write(`${String(copies).padStart(7)} copies  ${name.padEnd(32)} ${describe(runs)}\n`)
    }
  } finally {
    rmSync(workspace, { recursive: true, force: true })
  }
}
process.stdout.write(`\n${formatTable()}\n`)

/** A real copy of a small source, and its row and folder as often as asked for, under other names. */
function build(workspace, copies) {
  mkdirSync(join(workspace, 'data'))
  for (let file = 0; file < 10; file++)
    writeFileSync(join(workspace, 'data', `${file}.txt`), `sample ${file}`)
  writeFileSync(
    join(workspace, 'dsc.yaml'),
    `record: sqlite://${workspace}/record.db\nnode: bench\ncache: { root: ${workspace}/cache }\n` +
      `datasets: { data: { source: ${pathToFileURL(join(workspace, 'data'))}/ } }\n`,
  )
  run(workspace, COMMANDS['prepare, ready'])
  const database = new Database(join(workspace, 'record.db'))
  const [row] = database.prepare('SELECT * FROM copies').all()
  const columns = Object.keys(row)
  const insert = database.prepare(
    `INSERT INTO copies (${columns.join(', ')}) VALUES (${columns.map((column) => `@${column}`).join(', ')})`,
  )
  database.transaction(() => {
    for (let index = 1; index < copies; index++) {
      const dataset = `data-${index}`
      const directory = join(workspace, 'cache', 'copies', dataset, `${row.version.slice(0, 16)}-${index}`)
      mkdirSync(join(directory, 'files'), { recursive: true })
      linkManifest(row.directory, directory, index)
      const path = join(directory, 'files')
      insert.run({ ...row, copy_id: `copy-${index}`, dataset, directory, path, last_used_at_ms: index })
    }
  })()
  database.close()
}

/** A file system may allow only 65,000 names for one file. */
function linkManifest(from, to, index) {
  if (index % 50_000 < 49_999 && index < 50_000) linkSync(join(from, 'manifest.db'), join(to, 'manifest.db'))
  else writeFileSync(join(to, 'manifest.db'), '')
}

function run(workspace, words) {
  const start = performance.now()
  const { status, stderr } = spawnSync(
    '/usr/bin/env',
    ['time', '-f', 'rss=%M', process.execPath, DSC, ...words],
    {
      cwd: workspace,
      encoding: 'utf8',
      maxBuffer: 2 ** 30,
    },
  )
  const wallMs = performance.now() - start
  if (status !== 0) throw new Error(`${words.join(' ')} ended with ${status}: ${stderr}`)
  return { wallMs, rssMiB: Number(/rss=(\d+)/.exec(stderr)?.[1] ?? 0) / 1024 }
}

function median(values) {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]
}

function describe(runs) {
  const wall = runs.map(({ wallMs }) => wallMs)
  return `${median(wall).toFixed(0)} ms (${Math.min(...wall).toFixed(0)}–${Math.max(...wall).toFixed(0)}), ${median(runs.map(({ rssMiB }) => rssMiB)).toFixed(0)} MiB`
}

function formatTable() {
  const lines = [
    `${RUNS} runs each; node ${process.versions.node}, ${cpus().length} × ${cpus()[0].model}`,
    '',
    `| command | ${SIZES.map((size) => `${size.toLocaleString('en')} copies`).join(' | ')} |`,
    `|---|${SIZES.map(() => '---').join('|')}|`,
  ]
  for (const name of Object.keys(COMMANDS)) {
    const cells = SIZES.map((size) =>
      describe(rows.find((row) => row.copies === size && row.name === name).runs),
    )
    lines.push(`| \`${name}\` | ${cells.join(' | ')} |`)
  }
  return lines.join('\n')
}
