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
import pg from 'pg'
import { type FaultProxy, startFaultProxy } from '../../testing/fault-proxy.js'
import type { PostgresServer } from '../../testing/postgres-server.js'
import type { S3Server } from '../../testing/s3-server.js'
import type { Running } from '../dsc-processes.js'
import { makeWorld, s3Dataset, type World } from '../world.js'
import { type CrashPoint, crashEnvironment } from './crash-steps.js'
import type { Random } from './seeded-random.js'

/** A dataset in the bucket: how many objects of how many bytes. */
const SOURCES = {
  few: { objects: 3, bytes: 70_000 },
  many: { objects: 60, bytes: 5_000 },
  large: { objects: 2, bytes: 9_000_000 },
  tiny: { objects: 1, bytes: 10 },
} as const
export type SourceName = keyof typeof SOURCES
export const SOURCE_NAMES = Object.keys(SOURCES) as readonly SourceName[]

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

/** Two nodes with a cache each, one record and one source, with what this program did to them. */
export interface CrashWorld {
  readonly world: World
  readonly proxy: FaultProxy
  /** A folder beside the caches that no command may change, but for what is adopted and known again elsewhere. */
  readonly outside: string
  /** Folders that were adopted with a source: dsc may evict and mend them. */
  readonly given: string
  readonly holds: Hold[]
  /** Digests of bytes that this program wrote into copies to damage them. */
  readonly damage: Set<string>
  readonly rootOf: (node: NodeName) => string
  /** Starts dsc on a node; it writes down its steps, and dies at `point`. */
  start(node: NodeName, words: readonly string[], point?: CrashPoint): Running
  /** The steps that all processes noted since this was last called. */
  takeTrace(): readonly string[]
  /** Rows of the record as they are now, read beside the product's code. */
  query<T>(sql: string): Promise<readonly T[]>
  /** Changes some objects of a source, so that the next listing is another version. */
  changeSource(name: SourceName): Promise<void>
  /** Spoils one file of a ready copy of the node. Returns its dataset, or undefined when nothing is ready. */
  damageSomeFile(node: NodeName, random: Random): Promise<string | undefined>
  /** Makes a folder to adopt; with `source`, the same files once more as what they can be had from. */
  makeFolder(hasSource: boolean): { readonly folder: string; readonly name: string; readonly source: string }
  close(): Promise<void>
}

export async function openCrashWorld(
  server: S3Server,
  postgres: PostgresServer | undefined,
  random: Random,
): Promise<CrashWorld> {
  const endings: (() => unknown)[] = []
  const proxy = await startFaultProxy(server.endpoint)
  const bucket = await server.makeBucket()
  let generation = 0
  let folders = 0
  const put = async (name: SourceName, index: number) => {
    generation += 1
    const { bytes } = SOURCES[name]
    const body = createHash('shake256', { outputLength: 64 })
      .update(`${name} ${index} ${generation}`)
      .digest('hex')
    await server.putObject(
      bucket,
      `${name}/${index % 3 === 0 ? '' : 'deep/er/'}${index}.bin`,
      body.repeat(Math.ceil(bytes / body.length)).slice(0, bytes),
    )
  }
  for (const name of SOURCE_NAMES)
    await Promise.all(Array.from({ length: SOURCES[name].objects }, (_, index) => put(name, index)))
  const datasets = Object.fromEntries(
    SOURCE_NAMES.map((name) => [name, s3Dataset(bucket, `${name}/`, proxy.endpoint)]),
  )
  const world = await makeWorld(
    { after: (ending) => void endings.push(ending as () => unknown) },
    { server, datasets, cache: { maxDatasets: random.pick([1, 2, 3]) } },
  )
  const [outside, given, trace] = ['outside', 'given', 'trace'].map((name) => join(world.directory, name))
  mkdirSync(join(outside!, 'canary'), { recursive: true })
  writeFileSync(join(outside!, 'canary', 'sings'), 'la la la')
  mkdirSync(given!)
  const record = postgres && (await openPostgres(await postgres.makeDatabase()))
  const rootOf = (node: NodeName) => (node === 'node-a' ? world.root : join(world.directory, 'cache-b'))
  const query = async <T>(sql: string) => (record ? record.query<T>(sql) : world.query<T>(sql))
  const damage = new Set<string>()
  return {
    ...{ world, proxy, outside: outside!, given: given!, damage, rootOf, query, holds: [] },
    start: (node, words, point) =>
      world.start(words, {
        detached: true,
        environment: {
          ...crashEnvironment(trace!, point),
          ...(record ? { DSC_RECORD: record.url } : {}),
          ...{ DSC_NODE: node, DSC_CACHE_ROOT: rootOf(node) },
        },
      }),
    takeTrace() {
      const lines = existsSync(trace!) ? readFileSync(trace!, 'utf8').split('\n').filter(Boolean) : []
      rmSync(trace!, { force: true })
      return lines
    },
    async changeSource(name) {
      for (let index = 0; index < SOURCES[name].objects; index += 4) await put(name, index)
    },
    async damageSomeFile(node, chooser) {
      const copies = (
        await query<{ path: string; dataset: string }>(
          `SELECT path, dataset FROM copies WHERE state = 'ready' AND origin = 's3' AND node = '${node}'
            ORDER BY dataset, created_at_ms`,
        )
      ).filter(({ path }) => existsSync(path))
      if (copies.length === 0) return undefined
      const { path, dataset } = chooser.pick(copies)
      const files = readdirSync(path, { recursive: true, withFileTypes: true }).filter((entry) =>
        entry.isFile(),
      )
      if (files.length === 0) return undefined
      const chosen = chooser.pick(files)
      const file = join(chosen.parentPath, chosen.name)
      const bytes = readFileSync(file)
      if (bytes.length > 0) bytes[chooser.below(bytes.length)]! ^= 1
      damage.add(createHash('md5').update(bytes).digest('hex'))
      chmodSync(file, 0o644)
      writeFileSync(file, bytes)
      chmodSync(file, 0o444)
      return dataset
    },
    makeFolder(hasSource) {
      folders += 1
      const name = `found-${folders}`
      const folder = join(hasSource ? given! : outside!, name)
      mkdirSync(join(folder, 'sub'), { recursive: true })
      for (let index = 0; index < 5; index++) {
        const path = join(folder, index < 2 ? 'sub' : '', `${index}.txt`)
        // Flushed, so that the blocks it takes are known when it is adopted.
        writeFileSync(path, `${name} ${index}`.repeat(500), { flush: true })
      }
      const original = join(world.directory, 'originals', name)
      if (hasSource) cpSync(folder, original, { recursive: true })
      return { folder, name, source: `file://${original}/` }
    },
    async close() {
      for (const ending of endings.reverse()) await ending()
      await record?.close()
      await proxy.close()
    },
  }
}

/** Until the first command has made the schema, it has no rows. */
const UNDEFINED_TABLE = '42P01'

async function openPostgres(url: string) {
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
