import { createHash } from 'node:crypto'
import { chmodSync, readdirSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import type { TestContext } from 'node:test'
import pg from 'pg'
import { type Cluster, type ClusterNode, makeCluster } from '../../testing/cluster.js'
import type { Running } from '../../testing/dsc-processes.js'
import { type FaultProxy, startFaultProxy } from '../../testing/fault-proxy.js'
import { type S3Server, startS3Server } from '../../testing/s3-server.js'
import { mountSmallDisk } from '../../testing/small-disk.js'
import { temporaryDirectory } from '../../testing/temporary-directory.js'
import { s3Dataset } from '../../testing/world.js'
import { NODES, type NodeName, SOURCE_NAMES, SOURCES, type SourceName } from './plan-soak.js'
import { SoakClocks } from './soak-clocks.js'

/** A disk of its own for every node, on which not all datasets fit. */
export const DISK_BYTES = 128 << 20
export const MAX_PERCENT = 40

/** Three nodes with agents, a record, a store and clocks that this program sets. */
export interface SoakWorld {
  readonly cluster: Cluster
  readonly clocks: SoakClocks
  readonly proxy: FaultProxy
  readonly database: pg.Pool
  readonly agents: Map<NodeName, Running>
  nodeOf(name: NodeName): ClusterNode
  changeSource(name: SourceName): Promise<void>
  /** All digests that an object ever had in the store, by its key within the dataset. */
  digestsOf(name: SourceName): ReadonlyMap<string, ReadonlySet<string>>
}

/** Makes the world and starts the agents; everything ends with `context`. */
export async function makeSoakWorld(context: Pick<TestContext, 'after'>): Promise<SoakWorld> {
  const directory = await temporaryDirectory(context)
  chmodSync(directory, 0o755) // the database reads its clock there, as another user
  const clocks = new SoakClocks(directory)
  const server = await startS3Server()
  context.after(() => server.close())
  const proxy = await startFaultProxy(server.endpoint)
  context.after(() => proxy.close())
  const bucket = new SoakBucket(server, await server.makeBucket())
  for (const name of SOURCE_NAMES) await bucket.fill(name)
  const disks = new Map<string, string>()
  for (const name of NODES) disks.set(name, await mountSmallDisk(context, DISK_BYTES))
  const cluster = await makeCluster(context, {
    nodes: NODES,
    datasets: Object.fromEntries(
      SOURCE_NAMES.map((name) => [name, s3Dataset(bucket.name, `${name}/`, proxy.endpoint)]),
    ),
    environment: server.environment,
    environments: Object.fromEntries(
      NODES.map((name) => [
        name,
        { ...clocks.environmentOf(name), DSC_CACHE_ROOT: join(disks.get(name)!, 'cache') },
      ]),
    ),
    cache: { maxPercent: MAX_PERCENT },
    stage: { stallTimeout: '3s' },
    postgresEnvironment: clocks.environmentOf('record'),
  })
  const database = new pg.Pool({ connectionString: cluster.recordUrl, max: 3, connectionTimeoutMillis: 5000 })
  database.on('error', () => {})
  database.on('connect', (client) => void client.on('error', () => {}))
  context.after(() => database.end())
  const nodes = cluster.nodes.map((node) => ({ ...node, root: join(disks.get(node.name)!, 'cache') }))
  const nodeOf = (name: NodeName) => nodes.find((node) => node.name === name)!
  const agents = new Map<NodeName, Running>()
  for (const name of NODES) agents.set(name, await nodeOf(name).startAgent())
  return {
    cluster: { ...cluster, nodes },
    clocks,
    proxy,
    database,
    agents,
    nodeOf,
    changeSource: (name) => bucket.put(name, 0),
    digestsOf: (name) => bucket.digestsOf(name),
  }
}

/** SHA-256 of every file below a folder, by its path within it. */
export function digestTree(folder: string): ReadonlyMap<string, string> {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) =>
    entry.isFile(),
  )
  return new Map(
    files.map((entry) => {
      const path = join(entry.parentPath, entry.name)
      return [relative(folder, path), digestOf(readFileSync(path))]
    }),
  )
}

function digestOf(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex')
}

/** The objects of all sources; each time that one is written it has other bytes. */
class SoakBucket {
  readonly name: string
  readonly #server: S3Server
  readonly #digests = new Map<SourceName, Map<string, Set<string>>>()
  #generation = 0

  constructor(server: S3Server, name: string) {
    this.#server = server
    this.name = name
  }

  async fill(name: SourceName): Promise<void> {
    await Promise.all(Array.from({ length: SOURCES[name].objects }, (_, index) => this.put(name, index)))
  }

  /** One object at a time: so each listing is of one state of the source. */
  async put(name: SourceName, index: number): Promise<void> {
    this.#generation += 1
    const { bytes } = SOURCES[name]
    const text = createHash('shake256', { outputLength: 500 })
      .update(`${name} ${index} ${this.#generation}`)
      .digest('hex')
    const body = Buffer.from(text.repeat(Math.ceil(bytes / text.length)).slice(0, bytes))
    const key = `${index % 3 === 0 ? '' : 'deep/er/'}${index}.bin`
    const digests = this.#digests.get(name) ?? new Map<string, Set<string>>()
    this.#digests.set(name, digests)
    const known = digests.get(key) ?? new Set()
    digests.set(key, known)
    known.add(digestOf(body)) // before it can be read
    await this.#server.putObject(this.name, `${name}/${key}`, body)
  }

  digestsOf(name: SourceName): ReadonlyMap<string, ReadonlySet<string>> {
    return this.#digests.get(name)!
  }
}
