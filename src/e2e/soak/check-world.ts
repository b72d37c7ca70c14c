import { existsSync, lstatSync, readdirSync, statfsSync } from 'node:fs'
import { join } from 'node:path'
import type { Findings } from './findings.js'
import { NODES, type NodeName, type SourceName } from './plan-soak.js'
import type { Hold } from './run-job.js'
import { digestTree, MAX_PERCENT, type SoakWorld } from './soak-world.js'

interface CopyRow {
  readonly copy_id: string
  readonly dataset: SourceName
  readonly node: NodeName
  readonly state: string
  readonly directory: string
  readonly path: string
  readonly charged_bytes: string
}

interface LeaseRow {
  readonly copy_id: string
  readonly purpose: string
  readonly task: string
  readonly expires_at_ms: string | null
}

/** What the record says at one moment, read as tables. */
interface Snapshot {
  readonly nowMs: number
  readonly copies: readonly CopyRow[]
  readonly leases: readonly LeaseRow[]
  readonly view: readonly {
    readonly dataset: string
    readonly node: string
    readonly reference_count: string
  }[]
}

/** Reading the tables takes less than this: more is a step of the clock, before which the view counted. */
const MAX_READ_MS = 3000
/** What a cache needs beside its copies: manifests while they are written, lists of samples. */
const DISK_SLACK_BYTES = 6 << 20

/**
 * Looks at the record and the disks, with nothing of the product but its formats. Undefined when the record is away.
 * `holds` is what jobs hold at this moment.
 */
export async function checkWorld(
  world: SoakWorld,
  holds: ReadonlySet<Hold>,
  findings: Findings,
): Promise<void> {
  const held = [...holds]
  const snapshot = await readSnapshot(world).catch(() => undefined)
  if (snapshot === undefined) return
  const stillHeld = held.filter((hold) => holds.has(hold) && hold.expiresAtMs > snapshot.nowMs + 5000)
  for (const problem of [
    ...findLost(snapshot, stillHeld),
    ...findMiscounted(snapshot),
    ...findOverQuota(world, snapshot),
  ])
    findings.fail(problem)
  await checkSomeCopy(world, snapshot, findings)
  findings.count('checks')
}

/** One transaction, so that the tables belong together. */
async function readSnapshot({ database }: SoakWorld): Promise<Snapshot> {
  const client = await database.connect()
  try {
    await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY')
    const clock = 'SELECT extract(epoch FROM clock_timestamp()) * 1000 AS now'
    const before = Number((await client.query(clock)).rows[0].now)
    const copies = await client.query<CopyRow>('SELECT * FROM copies')
    const leases = await client.query<LeaseRow>('SELECT * FROM leases')
    const view = await client.query<Snapshot['view'][number]>('SELECT * FROM cache_record')
    const nowMs = Number((await client.query(clock)).rows[0].now)
    await client.query('COMMIT')
    if (Math.abs(nowMs - before) > MAX_READ_MS) throw new Error('the clock stepped between two tables')
    return { nowMs, copies: copies.rows, leases: leases.rows, view: view.rows }
  } finally {
    client.release(true)
  }
}

/** A copy that a job holds is ready, and its lease is there. */
function findLost({ copies, leases }: Snapshot, held: readonly Hold[]): readonly string[] {
  return held.flatMap(({ task, copyId, path, node }) => {
    const copy = copies.find(({ copy_id }) => copy_id === copyId)
    const what = `${node}: ${copyId}, held by ${task},`
    if (copy?.state !== 'ready') return [`${what} is ${copy?.state ?? 'gone'}`]
    if (copy.path !== path) return [`${what} was at ${path} and is at ${copy.path}`]
    if (!leases.some((lease) => lease.copy_id === copyId && lease.task === task && lease.purpose === 'use'))
      return [`${what} has lost its lease`]
    return existsSync(path) ? [] : [`${what} is not at ${path}`]
  })
}

/** The view counts the living leases of a copy that is used or read by others. */
function findMiscounted({ nowMs, copies, leases, view }: Snapshot): readonly string[] {
  const isLiving = ({ expires_at_ms }: LeaseRow) => expires_at_ms === null || Number(expires_at_ms) > nowMs
  // A lease that ends in this moment may be counted or not.
  const isEnding = leases.some(({ expires_at_ms }) => Math.abs(Number(expires_at_ms ?? 0) - nowMs) < 3000)
  if (isEnding) return []
  return NODES.flatMap((node) => {
    const ready = copies.filter((copy) => copy.node === node && copy.state === 'ready')
    const counted = leases.filter(
      (lease) =>
        lease.purpose !== 'stage' &&
        isLiving(lease) &&
        ready.some(({ copy_id }) => copy_id === lease.copy_id),
    ).length
    const said = view
      .filter((row) => row.node === node)
      .reduce((sum, row) => sum + Number(row.reference_count), 0)
    return counted === said ? [] : [`${node}: ${counted} living leases, reference counts say ${said}`]
  })
}

function findOverQuota(world: SoakWorld, { copies }: Snapshot): readonly string[] {
  return NODES.flatMap((node) => {
    const { root } = world.nodeOf(node)
    const { bsize, blocks, bfree } = statfsSync(join(root, '..'))
    const allowed = (bsize * blocks * MAX_PERCENT) / 100
    const own = copies.filter((copy) => copy.node === node)
    // What is being evicted makes room for what was admitted, which is not written before that is gone.
    const staying = own.filter(({ state }) => state !== 'evicting')
    const charged = staying.reduce((sum, copy) => sum + Number(copy.charged_bytes), 0)
    const rows = own
      .map(({ dataset, state, charged_bytes }) => `${dataset} ${state} ${charged_bytes}`)
      .join(', ')
    const used = bsize * (blocks - bfree)
    return [
      ...(charged > allowed
        ? [`${node}: copies are charged ${charged} bytes, ${allowed} are allowed: ${rows}`]
        : []),
      ...(used > allowed + DISK_SLACK_BYTES
        ? [`${node}: the disk has ${used} bytes, ${allowed} are allowed: ${rows}`]
        : []),
    ]
  })
}

let turn = 0

/** Reads one ready copy after the other and compares it with what the store ever had. */
async function checkSomeCopy(world: SoakWorld, { copies }: Snapshot, findings: Findings): Promise<void> {
  const ready = copies.filter(({ state }) => state === 'ready')
  const copy = ready[turn++ % Math.max(1, ready.length)]
  if (copy === undefined) return
  const expected = world.digestsOf(copy.dataset)
  let problem: string | undefined
  try {
    const found = digestTree(copy.path)
    if (found.size !== expected.size) problem = `has ${found.size} files of ${expected.size}`
    for (const [key, digest] of found)
      if (!expected.get(key)?.has(digest)) problem = `${key} is not what the store ever had`
  } catch (error) {
    problem = String(error)
  }
  if (problem === undefined) return
  // It may have been evicted meanwhile, as nobody need hold it.
  const { rows } = await world.database
    .query(`SELECT state FROM copies WHERE copy_id = $1 AND state = 'ready'`, [copy.copy_id])
    .catch(() => ({ rows: [] }))
  if (rows.length > 0) findings.fail(`${copy.node}: ready ${copy.dataset} ${copy.copy_id}: ${problem}`)
}

/** Nothing runs, and every node has cleaned up: every folder has its row, every row its folder, nothing is left over. */
export async function checkSettled(world: SoakWorld, findings: Findings): Promise<void> {
  const { copies, leases, nowMs } = await readSnapshot(world)
  for (const lease of leases)
    if (lease.purpose === 'stage' && Number(lease.expires_at_ms) > nowMs)
      findings.fail(`settled: ${lease.task} still stages ${lease.copy_id}`)
  for (const { copy_id, node, state, dataset } of copies)
    if (state !== 'ready') findings.fail(`settled: ${node}: ${dataset} ${copy_id} is ${state}`)
  for (const node of NODES) {
    const { root } = world.nodeOf(node)
    for (const name of ['staging', 'trash'])
      for (const left of list(join(root, name)).filter((entry) => !entry.startsWith('kept-')))
        findings.fail(`settled: ${node}: ${name}/${left} is left`)
    const own = copies.filter((copy) => copy.node === node)
    const known = new Set(own.map(({ directory }) => directory))
    for (const dataset of list(join(root, 'copies')))
      for (const version of list(join(root, 'copies', dataset))) {
        const directory = join(root, 'copies', dataset, version)
        if (!known.has(directory)) findings.fail(`settled: ${node}: ${directory} is in no row`)
      }
    for (const { directory, dataset, charged_bytes } of own) {
      const taken = existsSync(directory) ? bytesOf(directory) : -1
      if (taken !== Number(charged_bytes))
        findings.fail(`settled: ${node}: ${dataset} is charged ${charged_bytes} bytes and takes ${taken}`)
    }
  }
  findings.count('checks of everything at rest')
}

function list(directory: string): readonly string[] {
  return existsSync(directory) ? readdirSync(directory) : []
}

/** Blocks of everything below and including a folder. */
function bytesOf(path: string): number {
  const stats = lstatSync(path)
  const below = stats.isDirectory() ? readdirSync(path).map((name) => bytesOf(join(path, name))) : []
  return below.reduce((sum, bytes) => sum + bytes, stats.blocks * 512)
}
