// Ten years of metadata: what `history`, `why` and `cleanup` cost when the record holds millions of events.
// Usage: npm run bench:history -- [events] [datasets] [runs] [folder]     default: 10,000,000 events of 100,000 datasets
// A folder keeps the record, which takes minutes to make, for the next time.
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { cpus, loadavg, tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import Database from 'better-sqlite3'

const [EVENTS, DATASETS, RUNS] = [10_000_000, 100_000, 5].map((usual, index) =>
  Number(process.argv[2 + index] ?? usual),
)
const DSC = fileURLToPath(new URL('../../bin/dsc.js', import.meta.url))
const YEARS_MS = 10 * 365.25 * 24 * 3_600_000
const NODES = 200
const KINDS = ['staged', 'leased', 'released', 'leased', 'released', 'leased', 'lease-expired', 'evicted']
const FAILURE = '00c0ffee00c0' // an id that no event has: nothing is as far away

const kept = process.argv[5] && resolve(process.argv[5])
const workspace = kept ?? mkdtempSync(join(tmpdir(), 'dsc-bench-'))
try {
  if (!existsSync(join(workspace, 'record.db'))) build()
  process.stdout.write(
    `${EVENTS.toLocaleString('en')} events of ${DATASETS.toLocaleString('en')} datasets over ten years, ${describeSize()}; ` +
      `node ${process.versions.node}, ${cpus().length} × ${cpus()[0].model}, load ${loadavg()[0].toFixed(1)}\n`,
  )
  const commands = [
    ['history', 'history'],
    ['history, one dataset', 'history', 'data-7'],
    ['history, a node that is rare', 'history', '--node', 'gone'],
    ['why', 'why', 'data-7'],
    ['why, an unknown failure', 'why', FAILURE],
  ]
  for (const [name, ...words] of commands) {
    run(words)
    tell(
      name,
      Array.from({ length: RUNS }, () => run(words)),
    )
  }
  tell(
    'cleanup with ten years to forget',
    Array.from({ length: RUNS }, () => run(['cleanup'])),
  )
  setKept('7300d')
  tell(
    'cleanup with nothing to forget',
    Array.from({ length: RUNS }, () => run(['cleanup'])),
  )
} finally {
  if (kept) setKept('92d')
  else rmSync(workspace, { recursive: true, force: true })
}

/** How long the history is kept, and what else stands in dsc.yaml. */
function setKept(history) {
  const datasets = Array.from(
    { length: 10 },
    (_, index) => `  data-${index}: { source: ${pathToFileURL(join(workspace, 'data'))}/ }\n`,
  )
  writeFileSync(
    join(workspace, 'dsc.yaml'),
    `record: sqlite://${workspace}/record.db\nnode: bench\ncache: { root: ${workspace}/cache }\nhistory: ${history}\n` +
      `datasets:\n${datasets.join('')}`,
  )
}

function build() {
  mkdirSync(join(workspace, 'data'), { recursive: true })
  writeFileSync(join(workspace, 'data', '1.txt'), 'sample')
  setKept('92d')
  run(['prepare', 'data-7', '--task', 'bench'])
  const database = new Database(join(workspace, 'record.db'))
  database.pragma('synchronous = OFF')
  const insert = database.prepare(
    'INSERT INTO events (at_ms, kind, node, dataset, copy_id, task, reason, detail) VALUES (?, ?, ?, ?, ?, ?, ?, ?)',
  )
  const startedMs = performance.now()
  // Made again at the end: so it takes minutes less.
  const indexes = database
    .prepare(
      `SELECT name, sql FROM sqlite_master WHERE type = 'index' AND tbl_name = 'events' AND sql IS NOT NULL`,
    )
    .all()
  for (const { name } of indexes) database.exec(`DROP INDEX ${name}`)
  const firstMs = Date.now() - YEARS_MS
  const dataset = database.prepare(
    'INSERT OR IGNORE INTO datasets (name, definition, updated_at_ms) VALUES (?, ?, ?)',
  )
  database.transaction(() => {
    for (let index = 0; index < DATASETS; index++) {
      const name = `data-${index}`
      dataset.run(name, JSON.stringify({ name, source: 's3://b/', include: [], exclude: [] }), firstMs)
    }
    for (let index = 0; index < EVENTS; index++) {
      const dataset = (index * 7919) % DATASETS
      insert.run(
        Math.round(firstMs + (YEARS_MS * index) / EVENTS),
        KINDS[index % KINDS.length],
        index === EVENTS / 2 ? 'gone' : `gpu-${index % NODES}`,
        `data-${dataset}`,
        `copy-${dataset}-${index % NODES}`,
        `slurm:${index}`,
        'at the request of the job',
        '{"bytes":1073741824}',
      )
    }
  })()
  for (const { sql } of indexes) database.exec(sql)
  database.pragma('wal_checkpoint(TRUNCATE)')
  database.close()
  process.stderr.write(`made in ${((performance.now() - startedMs) / 1000).toFixed(0)} s\n`)
}

function run(words) {
  const started = performance.now()
  const { status, stderr } = spawnSync(
    '/usr/bin/env',
    ['time', '-f', 'rss=%M', process.execPath, DSC, ...words],
    { cwd: workspace, encoding: 'utf8', maxBuffer: 2 ** 30 },
  )
  const wallMs = performance.now() - started
  // `why` of an id that nobody gave is a mistake of the user, and must be told as fast.
  if (status !== 0 && !words.includes(FAILURE))
    throw new Error(`${words.join(' ')} ended with ${status}: ${stderr}`)
  return { wallMs, rssMiB: Number(/rss=(\d+)/.exec(stderr)?.[1] ?? 0) / 1024 }
}

function tell(name, runs) {
  const wall = runs.map(({ wallMs }) => wallMs).toSorted((a, b) => a - b)
  const rss = Math.max(...runs.map(({ rssMiB }) => rssMiB))
  const median = wall[Math.floor(wall.length / 2)]
  process.stdout.write(
    `${name.padEnd(42)} ${median.toFixed(0).padStart(6)} ms (${wall[0].toFixed(0)}–${wall.at(-1).toFixed(0)}), ` +
      `${rss.toFixed(0)} MiB, record ${describeSize()}\n`,
  )
}

function describeSize() {
  const bytes = ['record.db', 'record.db-wal'].reduce(
    (sum, name) => sum + (statSync(join(workspace, name), { throwIfNoEntry: false })?.size ?? 0),
    0,
  )
  return `${(bytes / 2 ** 30).toFixed(2)} GiB`
}
