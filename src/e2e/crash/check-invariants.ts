import { createHash } from 'node:crypto'
import { existsSync, lstatSync, readdirSync, readFileSync, realpathSync } from 'node:fs'
import { join, relative } from 'node:path'
import Database from 'better-sqlite3'
import { findProcess } from '../../platform/processes.js'
import { type CrashWorld, NODE_NAMES } from './crash-world.js'

interface CopyRow {
  readonly copy_id: string
  readonly dataset: string
  readonly node: string
  readonly version: string | null
  readonly state: string
  readonly origin: string
  readonly directory: string
  readonly path: string
  readonly charged_bytes: number
  readonly lock_state: string | null
}

interface LeaseRow {
  readonly copy_id: string
  readonly purpose: string
  readonly expires_at_ms: number | null
  readonly task: string
  readonly holder: string
}

interface ObjectRow {
  readonly id: number
  readonly key: string
  readonly size_bytes: number
  readonly etag: string | null
  readonly state: number
  readonly digest: string | null
}

/**
 * Reads record and disk without the product's code and says what is broken. `isSettled`: nothing runs and a
 * cleanup has just ended, so that record and disk must agree exactly.
 */
export async function findBroken(crash: CrashWorld, isSettled: boolean): Promise<readonly string[]> {
  const broken: string[] = []
  const copies = await crash.query<CopyRow>('SELECT * FROM copies')
  const leases = await crash.query<LeaseRow>('SELECT * FROM leases')
  const ready = copies.filter(({ state }) => state === 'ready')
  for (const copy of ready) {
    // Its folder may have been taken away by this program; cleanup forgets it then.
    if (!isSettled && copy.origin === 'local' && !existsSync(copy.path)) continue
    for (const problem of findDifferences(copy, crash.damage))
      broken.push(`ready ${copy.dataset} ${copy.copy_id}: ${problem}`)
  }
  for (const hold of crash.holds) {
    const copy = ready.find(({ copy_id }) => copy_id === hold.copyId)
    const what = hold.task === null ? 'locked' : `leased by ${hold.task}`
    if (!copy) broken.push(`${hold.dataset} ${hold.copyId} was ${what} and is gone`)
    else if (hold.task === null && copy.lock_state === null) broken.push(`${hold.dataset}: its lock is gone`)
    else if (
      hold.task !== null &&
      !leases.some(({ copy_id, task }) => copy_id === hold.copyId && task === hold.task)
    )
      broken.push(`${hold.dataset}: the lease of ${hold.task} is gone`)
  }
  broken.push(...findLostLeases(copies, leases))
  if (isSettled) {
    broken.push(...findDisagreements(crash, copies, leases))
    broken.push(...findMiscounts(await crash.query<CountRow>(COUNTS), copies, leases))
  }
  return broken
}

const COUNTS = 'SELECT dataset, node, sum(reference_count) AS count FROM cache_record GROUP BY dataset, node'

interface CountRow {
  readonly dataset: string
  readonly node: string
  readonly count: number
}

/** The reference count of a copy is the number of its live leases, counted here once more. */
function findMiscounts(
  counts: readonly CountRow[],
  copies: readonly CopyRow[],
  leases: readonly LeaseRow[],
): readonly string[] {
  // What ends just now may be counted or not.
  const countAt = (atMs: number, dataset: string, node: string) => {
    const own = copies.filter(
      (copy) => copy.dataset === dataset && copy.node === node && copy.state === 'ready',
    )
    const ids = new Set(own.map(({ copy_id }) => copy_id))
    return leases.filter(
      ({ copy_id, purpose, expires_at_ms }) =>
        ids.has(copy_id) && purpose !== 'stage' && (expires_at_ms === null || expires_at_ms > atMs),
    ).length
  }
  const key = ({ dataset, node }: Pick<CopyRow, 'dataset' | 'node'>) => `${dataset} on ${node}`
  const counted = new Set(counts.map(key))
  const ready = new Set(copies.filter(({ state }) => state === 'ready').map(key))
  const uncounted = [...ready].filter((one) => !counted.has(one))
  const miscounts = counts.flatMap(({ dataset, node, count }) => {
    const [most, least] = [
      countAt(Date.now() - 5000, dataset, node),
      countAt(Date.now() + 5000, dataset, node),
    ]
    return count <= most && count >= least
      ? []
      : [`${dataset} on ${node} has ${count} references by the record, and ${least} live leases`]
  })
  return [...miscounts, ...uncounted.map((one) => `${one} is ready, and in no cache record`)]
}

function findLostLeases(copies: readonly CopyRow[], leases: readonly LeaseRow[]): readonly string[] {
  const ids = new Set(copies.map(({ copy_id }) => copy_id))
  return leases
    .filter(({ copy_id }) => !ids.has(copy_id))
    .map(({ task }) => `a lease of ${task} is of no copy`)
}

/** After a cleanup with nothing running: every row has its files, every directory its row, nothing is left over. */
function findDisagreements(
  crash: CrashWorld,
  copies: readonly CopyRow[],
  leases: readonly LeaseRow[],
): readonly string[] {
  const broken: string[] = []
  // An operator locked what was being staged: its files stay for the next stager.
  const kept = copies.filter(
    ({ state, lock_state }) => (state === 'reserved' || state === 'staging') && lock_state !== null,
  )
  for (const copy of copies) {
    if (kept.includes(copy)) continue
    if (copy.state !== 'ready')
      broken.push(
        `${copy.dataset} ${copy.copy_id} is ${copy.state} (${copy.charged_bytes} bytes reserved), and nobody works on it`,
      )
    else {
      const found = diskBytes(copy.directory) + (copy.origin === 'local' ? diskBytes(copy.path) : 0)
      if (found !== copy.charged_bytes)
        broken.push(
          `${copy.dataset} ${copy.copy_id} is charged ${copy.charged_bytes} bytes and takes ${found}`,
        )
    }
  }
  for (const node of NODE_NAMES) {
    const root = crash.rootOf(node)
    for (const name of ['staging', 'trash'])
      for (const left of list(root, name).filter((entry) => !entry.startsWith('kept-')))
        if (!kept.some(({ copy_id }) => copy_id === left)) broken.push(`${node}: ${name}/${left} is left`)
    const known = new Set(copies.filter((copy) => copy.node === node).map(({ directory }) => directory))
    for (const dataset of list(root, 'copies'))
      for (const version of list(root, 'copies', dataset)) {
        const directory = join(root, 'copies', dataset, version)
        if (!known.has(directory)) broken.push(`${directory} is in no row`)
        for (const entry of readdirSync(directory))
          if (entry !== 'files' && entry !== 'manifest.db') broken.push(`${directory}/${entry} is left`)
      }
  }
  for (const left of readdirSync(crash.given, { recursive: true, encoding: 'utf8' }))
    if (left.includes('.dsc-') && !isMarkOf(crash.given, left)) broken.push(`given/${left} is left`)
  for (const { task, holder } of leases) {
    const { kind, pid } = JSON.parse(holder) as { kind: string; pid?: number }
    if (kind === 'process' && pid !== undefined && findProcess(pid) === undefined)
      broken.push(`the lease of ${task} is held by process ${pid}, which is gone`)
  }
  return broken
}

/** A folder that is still there may keep the file that says by whom it was adopted. */
function isMarkOf(given: string, name: string): boolean {
  const folder = /^\.(.+)\.dsc-adopted$/.exec(name)?.[1]
  return folder !== undefined && existsSync(join(given, folder))
}

/** Lists a directory; empty if it does not exist yet. */
function list(...path: readonly string[]): readonly string[] {
  const directory = join(...path)
  return existsSync(directory) ? readdirSync(directory) : []
}

/** Compares the files of a copy with its manifest, object by object, and looks for files that are in none. */
function findDifferences(copy: CopyRow, damage: ReadonlySet<string>): readonly string[] {
  const manifest = join(copy.directory, 'manifest.db')
  if (!existsSync(manifest)) return ['it has no manifest']
  const database = new Database(manifest, { readonly: true })
  try {
    const broken: string[] = []
    const listing = database.prepare(`SELECT value FROM setting WHERE name = 'listing'`).pluck().get() as
      | string
      | undefined
    if (listing === undefined || JSON.parse(listing).version !== copy.version)
      broken.push('its manifest is of another version')
    const rows = database.prepare('SELECT * FROM object').all() as ObjectRow[]
    const root = realpathSync(join(copy.directory, 'files'))
    if (root !== copy.path) broken.push(`its path is ${copy.path}, its files are in ${root}`)
    for (const row of rows) {
      const path = join(root, row.key)
      if (row.state !== 1) broken.push(`${row.key} is not marked as fetched`)
      if (!existsSync(path)) broken.push(`${row.key} is missing`)
      else if (!isAsListed(row, readFileSync(path), damage)) broken.push(`${row.key} has other bytes`)
    }
    const keys = new Set(rows.map(({ key }) => key))
    for (const entry of readdirSync(root, { recursive: true, withFileTypes: true })) {
      const key = relative(root, join(entry.parentPath, entry.name))
      if (!entry.isDirectory() && !keys.has(key)) broken.push(`${key} is not in the manifest`)
    }
    return broken
  } finally {
    database.close()
  }
}

function isAsListed(row: ObjectRow, bytes: Buffer, damage: ReadonlySet<string>): boolean {
  const md5 = createHash('md5').update(bytes).digest('hex')
  if (damage.has(md5)) return true
  if (bytes.length !== row.size_bytes) return false
  if (row.etag !== null && /^[0-9a-f]{32}$/.test(row.etag)) return md5 === row.etag
  return row.digest === null || row.digest === `sha256:${createHash('sha256').update(bytes).digest('base64')}`
}

/** Blocks of everything below and including a directory; symlinks count as themselves. */
function diskBytes(path: string): number {
  const stats = lstatSync(path)
  const below = stats.isDirectory() ? readdirSync(path).map((name) => diskBytes(join(path, name))) : []
  return below.reduce((sum, bytes) => sum + bytes, stats.blocks * 512)
}

/** A digest per path below a directory, to see whether anything changed. */
export function fingerprint(directory: string): ReadonlyMap<string, string> {
  return new Map(
    readdirSync(directory, { recursive: true, withFileTypes: true }).map((entry) => {
      const path = join(entry.parentPath, entry.name)
      const stats = lstatSync(path)
      const content = entry.isFile() ? createHash('md5').update(readFileSync(path)).digest('hex') : ''
      return [relative(directory, path), `${stats.mode} ${entry.isFile() ? stats.mtimeMs : ''} ${content}`]
    }),
  )
}
