// One dataset to all nodes of a swarm, with or without faults, and what it took.
import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { cpuSecondsOf, watchProcessors } from '../harness/processes.mjs'

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
  const query = async (sql, ...values) => (await database.query(sql, values)).rows
  await untilAllReport(query)
  const sentBefore = await swarm.readSent()
  const busy = watchProcessors()
  const startedMs = Date.now()
  const curve = []
  const watch = setInterval(async () => {
    const written = await readWritten(query, dataset).catch(() => undefined)
    if (written === undefined) return
    curve.push({ seconds: (Date.now() - startedMs) / 1000, written, load: readLoad(swarm) })
    faults?.(Object.values(written).reduce((sum, bytes) => sum + bytes, 0) / (shape.total * nodes.length))
  }, LOOK_MS)
  try {
    const words = ['prepare', dataset, '--nodes', nodes.join(','), '--task', `bench ${dataset}`, '--json']
    for (let commands = 1; ; commands++) {
      const { code, stderr } = await swarm.cluster.nodes[0].dsc(...words)
      if (code === 0) break
      if (faults === undefined || commands > 20)
        throw new Error(`${words.join(' ')} ended with ${code}: ${stderr}`)
      await sleep(1000)
    }
  } finally {
    clearInterval(watch)
  }
  const seconds = (Date.now() - startedMs) / 1000
  const processor = busy()
  const sql = `SELECT node, ready_at_ms FROM copies WHERE dataset = $1 AND state = 'ready' ORDER BY ready_at_ms`
  const ends = (await query(sql, dataset)).map(({ node, ready_at_ms }) => ({
    ...{ node, seconds: (Number(ready_at_ms) - startedMs) / 1000 },
  }))
  await database.end()
  const sentCopies = ((await swarm.readSent()) - sentBefore) / shape.total
  return { dataset, seconds, ends, processor, sentCopies, curve }
}

/** Compares every file of every node with the source, by sha256sum. Throws where one differs; then removes the copies. */
export function proveAndRemove({ swarm, dataset, shape, nodes, folder }) {
  const expected = digestsOf(join(folder, shape.name))
  for (const node of swarm.cluster.nodes.filter(({ name }) => nodes.includes(name))) {
    const copies = join(node.root, 'copies', dataset)
    const [copy, ...others] = readdirSync(copies)
    if (copy === undefined || others.length > 0)
      throw new Error(`${node.name} has ${others.length + 1} copies`)
    const found = digestsOf(join(copies, copy, 'files'))
    if (found.size !== expected.size)
      throw new Error(`${node.name} has ${found.size} files of ${expected.size}`)
    for (const [path, digest] of expected)
      if (found.get(path) !== digest) throw new Error(`${node.name}: ${path} is ${found.get(path)}`)
    rmSync(copies, { recursive: true })
  }
  return expected.size * nodes.length
}

/** What the run before left to do, as bytes of the copies that were removed, is over. */
async function untilAllReport(query) {
  spawnSync('sync')
  const sql = "SELECT count(*) AS late FROM nodes WHERE (agent::json->>'seenAtMs')::bigint < $1"
  while (Number((await query(sql, Date.now() - FRESH_MS))[0].late) > 0) await sleep(LOOK_MS)
}

function digestsOf(cwd) {
  const list = 'find . -type f -print0 | xargs -0 -P2 -n200 sha256sum'
  const { status, stdout, stderr } = spawnSync('bash', ['-c', list], {
    cwd,
    encoding: 'utf8',
    maxBuffer: 2 ** 28,
  })
  if (status !== 0) throw new Error(stderr)
  const lines = stdout.trimEnd().split('\n')
  return new Map(lines.map((line) => [line.slice(66), line.slice(0, 64)]))
}

async function readWritten(query, dataset) {
  const sql = 'SELECT node, state, written_bytes, content_bytes FROM copies WHERE dataset = $1'
  const bytesOf = (row) => Number(row.state === 'ready' ? row.content_bytes : row.written_bytes)
  return Object.fromEntries((await query(sql, dataset)).map((row) => [row.node, bytesOf(row)]))
}

/** So far, for each node and then the store: bytes `down` to it and `up` from it; processor seconds of its agent. */
function readLoad({ network, cluster, agents }) {
  const cableOf = ({ enter }) => `/sys/class/net/${enter.at(-1).replace('dsc', 'dsv')}/statistics`
  const read = (name) => network.hosts.map((host) => Number(readFileSync(`${cableOf(host)}/${name}`, 'utf8')))
  const busy = cluster.nodes.map(({ name }) => cpuSecondsOf(agents.get(name).process.pid))
  return { down: read('tx_bytes'), up: read('rx_bytes'), busy }
}
