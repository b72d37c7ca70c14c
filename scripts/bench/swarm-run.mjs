// One dataset to all nodes of a swarm, with or without faults, and what it took; for swarm.mjs.
import { execFileSync, spawnSync } from 'node:child_process'
import { readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { readLoad } from './swarm-load.mjs'

/** How often the record is asked how far everybody is, ms. */
const LOOK_MS = 1000
/** A run begins when every agent has told the record of itself within so long, ms, which it does every 10 s. */
const FRESH_MS = 12_000

/**
 * Stages `dataset` on `nodes` with one command, and again on those that failed, until every node has it. `faults`, if
 * given, is called meanwhile with the share of the bytes that have arrived everywhere.
 */
export async function stageOn({ swarm, dataset, shape, nodes, faults }) {
  const database = new pg.Pool({ connectionString: swarm.cluster.recordUrl, max: 2 })
  database.on('error', () => {})
  database.on('connect', (client) => void client.on('error', () => {}))
  await untilAllReport(database)
  const before = { sent: await swarm.readSent(), processor: readProcessor() }
  const startedMs = Date.now()
  const curve = []
  const watch = setInterval(async () => {
    const written = await readWritten(database, dataset).catch(() => undefined)
    if (written === undefined) return
    curve.push({ seconds: (Date.now() - startedMs) / 1000, written, load: readLoad(swarm) })
    const share = Object.values(written).reduce((sum, bytes) => sum + bytes, 0) / (shape.total * nodes.length)
    faults?.(share)
  }, LOOK_MS)
  let commands = 0
  try {
    const [first] = swarm.cluster.nodes
    for (;;) {
      commands += 1
      const words = ['prepare', dataset, '--nodes', nodes.join(','), '--task', `bench ${dataset}`, '--json']
      const { code, stderr } = await first.dsc(...words)
      if (code === 0) break
      if (faults === undefined || commands > 20)
        throw new Error(`dsc prepare ${dataset} ended with ${code}: ${stderr}`)
      await sleep(1000)
    }
  } finally {
    clearInterval(watch)
  }
  const seconds = (Date.now() - startedMs) / 1000
  const processor = busyShare(before.processor, readProcessor())
  const ends = await readEnds(database, dataset, startedMs)
  await database.end()
  const sentCopies = ((await swarm.readSent()) - before.sent) / shape.total
  return { dataset, seconds, commands, ends, processor, sentCopies, curve }
}

/** Compares every file of every node with the source, by sha256sum. Throws where one differs; then removes the copies. */
export function proveAndRemove({ swarm, dataset, shape, nodes, folder }) {
  const expected = digestsOf(join(folder, shape.name))
  for (const node of swarm.cluster.nodes.filter(({ name }) => nodes.includes(name))) {
    const copies = join(node.root, 'copies', dataset)
    const [copy, ...others] = readdirSync(copies)
    if (copy === undefined || others.length > 0) throw new Error(`${copies}: expected one copy`)
    const found = digestsOf(join(copies, copy, 'files'))
    for (const [file, digest] of expected)
      if (found.get(file) !== digest) throw new Error(`${node.name}: ${file} differs from the source`)
    if (found.size !== expected.size) throw new Error(`${node.name}: has ${found.size} files`)
    rmSync(copies, { recursive: true, force: true })
  }
  return expected.size * nodes.length
}

/** What the run before left to do, as bytes of the copies that were removed, is over. */
async function untilAllReport(database) {
  spawnSync('sync')
  const sql = "SELECT count(*) AS late FROM nodes WHERE (agent::json->>'seenAtMs')::bigint < $1"
  for (;;) {
    const { rows } = await database.query(sql, [Date.now() - FRESH_MS])
    if (Number(rows[0].late) === 0) return
    await sleep(LOOK_MS)
  }
}

function digestsOf(folder) {
  const listed = spawnSync('bash', ['-c', 'find . -type f -print0 | xargs -0 -P2 -n200 sha256sum'], {
    cwd: folder,
    encoding: 'utf8',
    maxBuffer: 2 ** 28,
  })
  if (listed.status !== 0) throw new Error(listed.stderr)
  const lines = listed.stdout.trimEnd().split('\n')
  return new Map(lines.map((line) => [line.slice(66), line.slice(0, 64)]))
}

async function readWritten(database, dataset) {
  const { rows } = await database.query(
    `SELECT node, state, written_bytes, content_bytes FROM copies WHERE dataset = $1`,
    [dataset],
  )
  return Object.fromEntries(
    rows.map((row) => [row.node, Number(row.state === 'ready' ? row.content_bytes : row.written_bytes)]),
  )
}

async function readEnds(database, dataset, startedMs) {
  const { rows } = await database.query(
    `SELECT node, ready_at_ms FROM copies WHERE dataset = $1 AND state = 'ready' ORDER BY ready_at_ms`,
    [dataset],
  )
  return rows.map((row) => ({ node: row.node, seconds: (Number(row.ready_at_ms) - startedMs) / 1000 }))
}

function readProcessor() {
  const [, ...times] = readFileSync('/proc/stat', 'utf8').split('\n')[0].trim().split(/\s+/).map(Number)
  const total = times.slice(0, 8).reduce((sum, time) => sum + time, 0)
  // What runs at low priority beside this gives way.
  return { total, idle: times[1] + times[3] + times[4] }
}

function busyShare(before, after) {
  return 1 - (after.idle - before.idle) / (after.total - before.total)
}

/** Resident memory of all processes of this program and its children, MiB. */
export function readMemory() {
  const rows = execFileSync('ps', ['-eo', 'rss=,args='], { encoding: 'utf8' }).split('\n')
  const agents = rows.filter((row) => row.includes('bin/dsc.js agent') && !row.includes('ip netns'))
  return agents.map((row) => Number.parseInt(row, 10) / 1024)
}
