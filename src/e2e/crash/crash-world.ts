import { createHash } from 'node:crypto'
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import pg from 'pg'
import type { Running } from '../../testing/dsc-processes.js'
import { type FaultProxy, startFaultProxy } from '../../testing/fault-proxy.js'
import type { PostgresServer } from '../../testing/postgres-server.js'
import type { S3Server } from '../../testing/s3-server.js'
import { mountSmallDisk, whyNoSmallDisk } from '../../testing/small-disk.js'
import { makeWorld, s3Dataset, type World, type WorldSettings } from '../../testing/world.js'
import { type CrashPoint, crashEnvironment } from './crash-steps.js'
import type { Random } from './seeded-random.js'

/** A dataset in the bucket: how many objects of how many bytes. Those of `shards` come in parts. */
const SOURCES = {
  few: { objects: 3, bytes: 4_000_000 },
  many: { objects: 60, bytes: 5_000 },
  large: { objects: 2, bytes: 9_000_000 },
  shards: { objects: 1, bytes: 26_000_000 },
  tiny: { objects: 1, bytes: 10 },
} as const
export type SourceName = keyof typeof SOURCES
export const SOURCE_NAMES = Object.keys(SOURCES) as readonly SourceName[]

/** Requests for the objects that `countBeforeLate` leaves out. */
export const LATE = '^GET [^? ]*/deep/er/'

/** Number of objects of a source that lie in no folder of it; all, if it has no others. */
export function countBeforeLate(name: SourceName): number {
  return Math.ceil(SOURCES[name].objects / 3)
}

export type NodeName = 'node-a' | 'node-b'
export const NODE_NAMES: readonly NodeName[] = ['node-a', 'node-b']

/** What must survive: a copy that a task leased or an operator locked, and that the command said so. */
export interface Hold {
  readonly copyId: string
  readonly dataset: string
  readonly node: NodeName
  /** `task` for a lease, null for a lock. */
  readonly task: string | null
}

const DOOR = 'run/dsc.sock'

interface CrashParts {
  readonly world: World
  readonly proxy: FaultProxy
  readonly bucket: Bucket
  /** PostgreSQL, where the record is there. */
  readonly database: CrashDatabase | undefined
  readonly endings: readonly (() => unknown)[]
}

/** Two nodes with a cache each, one record and one source, with what this program did to them. */
export class CrashWorld {
  readonly proxy: FaultProxy
  /** A folder beside the caches that no command may change, but for what is adopted and known again elsewhere. */
  readonly outside: string
  /** Folders that were adopted with a source: dsc may evict and mend them. */
  readonly given: string
  readonly holds: Hold[] = []
  /** Digests of bytes that this program wrote into copies to damage them. */
  readonly damage = new Set<string>()
  readonly #parts: CrashParts
  readonly #trace: string
  #folders = 0

  constructor(parts: CrashParts) {
    this.#parts = parts
    this.proxy = parts.proxy
    const { directory } = parts.world
    this.outside = join(directory, 'outside')
    this.given = join(directory, 'given')
    this.#trace = join(directory, 'trace')
    mkdirSync(join(this.outside, 'canary'), { recursive: true })
    writeFileSync(join(this.outside, 'canary', 'sings'), 'la la la')
    mkdirSync(this.given)
  }

  rootOf(node: NodeName): string {
    const { world } = this.#parts
    return node === 'node-a' ? world.root : join(world.directory, 'cache-b')
  }

  /** Starts dsc on a node; it writes down its steps, and dies at `point`. */
  start(node: NodeName, words: readonly string[], point?: CrashPoint): Running {
    const { world, database } = this.#parts
    return world.start(words, {
      detached: true,
      environment: {
        ...crashEnvironment(this.#trace, point),
        ...(database ? { DSC_RECORD: database.url } : {}),
        DSC_NODE: node,
        DSC_CACHE_ROOT: this.rootOf(node),
      },
    })
  }

  /** Where the service of a node answers, if one is started: `dsc agent`. */
  get door(): string {
    return join(this.#parts.world.directory, DOOR)
  }

  /** Starts dsc as a user without a configuration, who asks the service. */
  startAtDoor(words: readonly string[]): Running {
    return this.#parts.world.start(words, { detached: true, environment: { DSC_DOOR: this.door } })
  }

  /** The steps that all processes noted since this was last called. */
  takeTrace(): readonly string[] {
    const lines = existsSync(this.#trace) ? readFileSync(this.#trace, 'utf8').split('\n').filter(Boolean) : []
    rmSync(this.#trace, { force: true })
    return lines
  }

  /** Rows of the record as they are now, read beside the product's code. */
  async query<T>(sql: string): Promise<readonly T[]> {
    const { world, database } = this.#parts
    return database ? database.query<T>(sql) : world.query<T>(sql)
  }

  /** What a source ever held under an etag; undefined for an etag of another's. */
  bytesOf(etag: string): Buffer | undefined {
    return this.#parts.bucket.bytesOf(etag)
  }

  /** Changes some objects of a source, so that the next listing is another version. */
  async changeSource(name: SourceName): Promise<void> {
    for (let index = 0; index < SOURCES[name].objects; index += 4) await this.#parts.bucket.put(name, index)
  }

  /** Spoils one file of a ready copy of the node. Returns its dataset, or undefined when nothing is ready. */
  async damageSomeFile(node: NodeName, random: Random): Promise<string | undefined> {
    const rows = await this.query<{ path: string; dataset: string }>(
      `SELECT path, dataset FROM copies WHERE state = 'ready' AND origin = 's3' AND node = '${node}'
        ORDER BY dataset, created_at_ms`,
    )
    const copies = rows.filter(({ path }) => existsSync(path))
    if (copies.length === 0) return undefined
    const { path, dataset } = random.pick(copies)
    const entries = readdirSync(path, { recursive: true, withFileTypes: true })
    const files = entries.filter((entry) => entry.isFile())
    if (files.length === 0) return undefined
    const chosen = random.pick(files)
    const file = join(chosen.parentPath, chosen.name)
    const bytes = readFileSync(file)
    if (bytes.length > 0) bytes[random.below(bytes.length)]! ^= 1
    this.damage.add(createHash('md5').update(bytes).digest('hex'))
    chmodSync(file, 0o644)
    writeFileSync(file, bytes)
    chmodSync(file, 0o444)
    return dataset
  }

  /** Makes a folder to adopt; `given`: the same files once more are the source that they can be had from. */
  makeFolder(kind: 'given' | 'found'): Found {
    this.#folders += 1
    const name = `found-${this.#folders}`
    const folder = join(kind === 'given' ? this.given : this.outside, name)
    mkdirSync(join(folder, 'sub'), { recursive: true })
    for (let index = 0; index < 5; index++) {
      const path = join(folder, index < 2 ? 'sub' : '', `${index}.txt`)
      // Flushed, so that the blocks it takes are known when it is adopted.
      writeFileSync(path, `${name} ${index}`.repeat(500), { flush: true })
    }
    const original = join(this.#parts.world.directory, 'originals', name)
    if (kind === 'given') cpSync(folder, original, { recursive: true })
    return { folder, name, source: `file://${original}/` }
  }

  async close(): Promise<void> {
    for (const ending of this.#parts.endings.toReversed()) await ending()
    await this.#parts.database?.close()
    await this.proxy.close()
  }
}

interface Found {
  readonly folder: string
  readonly name: string
  readonly source: string
}

/** Opens a world whose sources are in a bucket of their own. */
export async function openCrashWorld(
  server: S3Server,
  postgres: PostgresServer | undefined,
  random: Random,
): Promise<CrashWorld> {
  const endings: (() => unknown)[] = []
  const proxy = await startFaultProxy(server.endpoint)
  const bucket = new Bucket(server, await server.makeBucket())
  await bucket.fill()
  const datasets = Object.fromEntries(
    SOURCE_NAMES.map((name) => [name, s3Dataset(bucket.name, `${name}/`, proxy.endpoint)]),
  )
  const context = { after: (ending: unknown) => void endings.push(ending as () => unknown) }
  const agent = { listen: '127.0.0.1:0', door: DOOR }
  const world = await makeWorld(context, { server, agent, datasets, ...(await chooseQuota(context, random)) })
  const database = postgres && (await openPostgres(await postgres.makeDatabase()))
  return new CrashWorld({ world, proxy, bucket, database, endings })
}

/** A disk of its own for the first node, on which the large source fits once, and not beside the few objects. */
const DISK_BYTES = 64 << 20
const DISK_PERCENT = 45

/** What makes copies go: a number of datasets, or bytes. */
async function chooseQuota(
  context: Pick<TestContext, 'after'>,
  random: Random,
): Promise<WorldSettings & { root?: string }> {
  if (whyNoSmallDisk !== false || random.chance(0.5))
    return { cache: { maxDatasets: random.pick([1, 2, 3]) } }
  const root = join(await mountSmallDisk(context, DISK_BYTES), 'cache')
  return { root, cache: { maxPercent: DISK_PERCENT } }
}

/** The objects of all sources; each time that one is written it has other bytes. */
class Bucket {
  readonly name: string
  readonly #server: S3Server
  /** How each object came to be, by its MD5. */
  readonly #made = new Map<string, { readonly seed: string; readonly bytes: number }>()
  #generation = 0

  constructor(server: S3Server, name: string) {
    this.#server = server
    this.name = name
  }

  async fill(): Promise<void> {
    for (const name of SOURCE_NAMES)
      await Promise.all(Array.from({ length: SOURCES[name].objects }, (_, index) => this.put(name, index)))
  }

  async put(name: SourceName, index: number): Promise<void> {
    this.#generation += 1
    const { bytes } = SOURCES[name]
    const seed = `${name} ${index} ${this.#generation}`
    const body = makeBody(seed, bytes)
    this.#made.set(createHash('md5').update(body).digest('hex'), { seed, bytes })
    const key = `${name}/${index % 3 === 0 ? '' : 'deep/er/'}${index}.bin`
    await this.#server.putObject(this.name, key, body)
  }

  bytesOf(etag: string): Buffer | undefined {
    const made = this.#made.get(etag)
    return made && makeBody(made.seed, made.bytes)
  }
}

/** No two of its blocks are equal, so that a range in another's place is found. */
function makeBody(seed: string, bytes: number): Buffer {
  return createHash('shake256', { outputLength: bytes }).update(seed).digest()
}

interface CrashDatabase {
  readonly url: string
  query<T>(sql: string): Promise<readonly T[]>
  close(): Promise<void>
}

/** Until the first command has made the schema, it has no rows. */
const UNDEFINED_TABLE = '42P01'

async function openPostgres(url: string): Promise<CrashDatabase> {
  pg.types.setTypeParser(pg.types.builtins.INT8, Number)
  const pool = new pg.Pool({ connectionString: url, max: 2 })
  pool.on('error', () => {})
  return {
    url,
    async query<T>(sql: string): Promise<readonly T[]> {
      try {
        return (await pool.query(sql)).rows as T[]
      } catch (error) {
        if ((error as { code?: string }).code === UNDEFINED_TABLE) return []
        throw error
      }
    },
    close: () => pool.end(),
  }
}
