// What the page of an agent costs it: memory of the agent, time until all is read, and time of each answer, with
// 1,000 nodes × 500 datasets in a record of SQLite, before anybody looks, while somebody looks, and after they left.
// Usage: npm run build && node scripts/bench/page.mjs [nodes] [datasets]
import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { cpus, tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import Database from 'better-sqlite3'
import { openSqliteRecord } from '../../dist/records/sqlite/record-store.js'
import { findFreePort } from '../../dist/testing/free-port.js'

const [NODES, DATASETS] = [1000, 500].map((usual, index) => Number(process.argv[2 + index] ?? usual))
const DSC = fileURLToPath(new URL('../../bin/dsc.js', import.meta.url))
const ASKED = [
  'nodes?count=50&sort=-disk',
  'matrix?count=40&node-count=50',
  'matrix?count=40&from=400&sort=-bytes',
  'waits',
  'copies?node=gpu-0500',
]

const folder = mkdtempSync(join(tmpdir(), 'dsc-bench-'))
const port = await findFreePort()
let agent
try {
  await fill()
  agent = spawn(process.execPath, [DSC, 'agent'], { cwd: folder, stdio: 'ignore' })
  const url = `http://127.0.0.1:${port}/`
  while (
    !(await fetch(`${url}readyz`).then(
      (answer) => answer.ok,
      () => false,
    ))
  )
    await sleep(100)
  await sleep(2000)
  const rows = [['before anybody looks', memory()]]
  const beganMs = performance.now()
  const stop = new AbortController()
  const live = await fetch(`${url}v1/page/live`, { signal: stop.signal })
  let most = 0
  let text = ''
  for await (const piece of live.body.pipeThrough(new TextDecoderStream())) {
    most = Math.max(most, memory())
    text += piece
    const messages = text.split('\n\n').filter((message) => message.includes('data: '))
    const told = messages.length > 0 ? JSON.parse(messages.at(-1).split('data: ')[1]) : undefined
    if (told?.nodesRead > NODES) break
  }
  const readMs = performance.now() - beganMs
  rows.push(['most while it reads', most])
  const times = []
  for (const what of ASKED) {
    const askedMs = performance.now()
    const answer = await fetch(`${url}v1/page/${what}`)
    const bytes = (await answer.arrayBuffer()).byteLength
    times.push([what, performance.now() - askedMs, bytes])
  }
  rows.push(['while somebody looks', memory()])
  stop.abort()
  await sleep(75_000)
  rows.push(['75 s after they left', memory()])
  process.stdout.write(
    `${NODES} nodes × ${DATASETS} datasets; node ${process.versions.node}, ${cpus().length} × ${cpus()[0].model}\n\n` +
      `all nodes were read after ${(readMs / 1000).toFixed(1)} s\n\n| the agent | MiB |\n|---|---|\n` +
      rows.map(([when, bytes]) => `| ${when} | ${Math.round(bytes / 2 ** 20)} |\n`).join('') +
      '\n| asked | ms | KiB |\n|---|---|---|\n' +
      times
        .map(([what, ms, bytes]) => `| \`${what}\` | ${ms.toFixed(0)} | ${(bytes / 1024).toFixed(0)} |\n`)
        .join(''),
  )
} finally {
  agent?.kill('SIGKILL')
  rmSync(folder, { recursive: true, force: true })
}

/** Resident bytes of the agent. */
function memory() {
  return 1024 * Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${agent.pid}/status`, 'utf8'))[1])
}

async function fill() {
  await (await openSqliteRecord(join(folder, 'record.db'))).close()
  writeFileSync(
    join(folder, 'dsc.yaml'),
    `node: viewer\nrecord: sqlite://${folder}/record.db\ncache: { root: ${folder}/cache }\nagent: { listen: 127.0.0.1:${port} }\n`,
  )
  const database = new Database(join(folder, 'record.db'))
  const node = database.prepare(
    'INSERT INTO nodes (node, cache_root, policy, disk, seen_at_ms) VALUES (?, ?, ?, ?, ?)',
  )
  const copy = database.prepare(
    `INSERT INTO copies (copy_id, dataset, node, version, state, origin, source, directory, path, charged_bytes,
       charged_inodes, written_bytes, files, content_bytes, last_task, last_used_at_ms, created_at_ms, ready_at_ms)
     VALUES (@id, @dataset, @node, 'v', 'ready', 's3', NULL, '/p', '/p', 1e9, 1000, 1e9, 1000, 1e9, 'job', @at, @at, @at)`,
  )
  const disk = JSON.stringify({ capacityBytes: 2e12, freeBytes: 1e12, inodesTotal: 1e8, inodesFree: 9e7 })
  const at = Date.now() - 3_600_000
  database.transaction(() => {
    for (let n = 1; n <= NODES; n += 1) {
      const name = `gpu-${String(n).padStart(4, '0')}`
      node.run(name, '/nvme/dsc', '{"maxPercent":80}', disk, Date.now())
      for (let d = 0; d < DATASETS; d += 1)
        copy.run({ id: `copy-${n}-${d}`, dataset: `data-${String(d).padStart(4, '0')}`, node: name, at })
    }
  })()
  database.close()
}
