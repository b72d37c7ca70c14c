// What it costs to look at a large cluster: time and memory of the commands that list, with 200 nodes × 500 datasets,
// a lease on every third copy and 100,000 events, on SQLite and on PostgreSQL.
// Usage: npm run build && node scripts/bench/many-nodes.mjs [nodes] [datasets] [runs]
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { cpus, tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import Database from 'better-sqlite3'
import { openSqliteRecord } from '../../dist/records/sqlite/record-store.js'
import { startPostgresServer } from '../../dist/testing/postgres-server.js'

const [NODES, DATASETS, RUNS] = [200, 500, 3].map((usual, index) => Number(process.argv[2 + index] ?? usual))
const DSC = fileURLToPath(new URL('../../bin/dsc.js', import.meta.url))
const COMMANDS = [
  ['status'],
  ['status', '--all'],
  ['status', '--json'],
  ['why', 'data-7'],
  ['leases', '--json'],
  ['history', '--json', '--limit', '100000'],
]

const workspace = mkdtempSync(join(tmpdir(), 'dsc-bench-'))
const server = await startPostgresServer()
try {
  const sqlite = `sqlite://${workspace}/record.db`
  await fill(join(workspace, 'record.db'))
  const postgres = await server.makeDatabase()
  run(['record', 'migrate', sqlite, postgres], sqlite)
  process.stdout.write(
    `${NODES} nodes × ${DATASETS} datasets; node ${process.versions.node}, ${cpus().length} × ${cpus()[0].model}\n\n` +
      '| command | SQLite | PostgreSQL |\n|---|---|---|\n',
  )
  for (const words of COMMANDS) {
    const cells = [sqlite, postgres].map((record) =>
      describe(Array.from({ length: RUNS }, () => run(words, record))),
    )
    process.stdout.write(`| \`${words.join(' ')}\` | ${cells.join(' | ')} |\n`)
  }
} finally {
  await server.close()
  rmSync(workspace, { recursive: true, force: true })
}

async function fill(path) {
  await (await openSqliteRecord(path)).close()
  writeFileSync(
    join(workspace, 'dsc.yaml'),
    `node: bench\ncache: { root: ${workspace}/cache }\ndatasets: { data-7: { source: file://${workspace}/ } }\n`,
  )
  const database = new Database(path)
  const node = database.prepare(
    'INSERT INTO nodes (node, cache_root, policy, disk, seen_at_ms) VALUES (?, ?, ?, ?, ?)',
  )
  const copy = database.prepare(
    `INSERT INTO copies (copy_id, dataset, node, version, state, origin, source, directory, path, charged_bytes,
       charged_inodes, written_bytes, files, content_bytes, last_task, last_used_at_ms, created_at_ms, ready_at_ms)
     VALUES (@id, @dataset, @node, @version, 'ready', 'store', @source, @path, @path, 1e9, 1000, 1e9, 1000, 1e9, @task,
       @at, @at, @at)`,
  )
  const lease = database.prepare(
    `INSERT INTO leases VALUES (@id, @id, 'use', @task, '{"kind":"ttl"}', @at, @at, @until)`,
  )
  const event = database.prepare(
    `INSERT INTO events (at_ms, kind, node, dataset, copy_id, task, reason, detail)
     VALUES (@at, 'staged', @node, @dataset, @id, @task, 'at the request of the job', '{"bytes":1000000000}')`,
  )
  const at = Date.now() - 3_600_000
  const disk = JSON.stringify({ sizeBytes: 2e12, freeBytes: 1e12, sizeInodes: 1e8, freeInodes: 9e7 })
  database.transaction(() => {
    for (let n = 0; n < NODES; n++) {
      const name = `gpu-${String(n + 1).padStart(3, '0')}`
      node.run(name, '/nvme/dsc', '{"maxPercent":80}', disk, Date.now())
      for (let d = 0; d < DATASETS; d++) {
        const id = `copy-${n}-${d}`
        const row = {
          id,
          dataset: `data-${d}`,
          node: name,
          version: `${d}`.padStart(64, 'a'),
          source: JSON.stringify({
            name: `data-${d}`,
            source: 's3://bucket/data/',
            include: [],
            exclude: [],
          }),
        }
        const made = {
          ...row,
          path: `/nvme/dsc/copies/data-${d}/${id}`,
          task: `slurm:${n}`,
          at,
          until: at + 9e7,
        }
        copy.run(made)
        if ((n + d) % 3 === 0) lease.run(made)
        event.run(made)
      }
    }
  })()
  database.close()
}

function run(words, record) {
  const started = performance.now()
  const { status, stderr } = spawnSync(
    '/usr/bin/env',
    ['time', '-f', 'rss=%M', process.execPath, DSC, ...words],
    { cwd: workspace, encoding: 'utf8', maxBuffer: 2 ** 30, env: { ...process.env, DSC_RECORD: record } },
  )
  const wallMs = performance.now() - started
  if (status !== 0) throw new Error(`${words.join(' ')} ended with ${status}: ${stderr}`)
  return { wallMs, rssMiB: Number(/rss=(\d+)/.exec(stderr)?.[1] ?? 0) / 1024 }
}

function describe(runs) {
  const wall = runs.map(({ wallMs }) => wallMs).toSorted((a, b) => a - b)
  const rss = Math.max(...runs.map(({ rssMiB }) => rssMiB))
  return `${(wall[Math.floor(wall.length / 2)] / 1000).toFixed(2)} s, ${rss.toFixed(0)} MiB`
}
