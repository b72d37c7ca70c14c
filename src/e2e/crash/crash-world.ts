import { createHash } from 'node:crypto'
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type FaultProxy, startFaultProxy } from '../../testing/fault-proxy.js'
import type { S3Server } from '../../testing/s3-server.js'
import { makeWorld, s3Dataset, type World } from '../world.js'
import type { Random } from './seeded-random.js'

/** A dataset in the bucket: how many objects of how many bytes. */
const SOURCES = {
  few: { objects: 3, bytes: 70_000 },
  many: { objects: 90, bytes: 5_000 },
  large: { objects: 2, bytes: 9_000_000 },
  tiny: { objects: 1, bytes: 10 },
} as const
export type SourceName = keyof typeof SOURCES
export const SOURCE_NAMES = Object.keys(SOURCES) as readonly SourceName[]

/** What must survive: a copy that a task leased or an operator locked, and that the command said so. */
export interface Hold {
  readonly copyId: string
  readonly dataset: string
  /** `task` for a lease, null for a lock. */
  readonly task: string | null
}

/** One machine and its source, with what this program did to them. */
export interface CrashWorld {
  readonly world: World
  readonly proxy: FaultProxy
  /** A folder beside the cache that no command may change, but for what is adopted and known again elsewhere. */
  readonly outside: string
  readonly holds: Hold[]
  /** Digests of bytes that this program wrote into copies to damage them. */
  readonly damage: Set<string>
  /** Changes some objects of a source, so that the next listing is another version. */
  changeSource(name: SourceName): Promise<void>
  /** Spoils one file of a ready copy. Returns its path, or undefined when nothing is ready. */
  damageSomeFile(random: Random): string | undefined
  /** Makes a folder to adopt. */
  makeFolder(): { readonly folder: string; readonly name: string }
  close(): Promise<void>
}

export async function openCrashWorld(server: S3Server, random: Random): Promise<CrashWorld> {
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
    for (let index = 0; index < SOURCES[name].objects; index++) await put(name, index)
  const datasets = Object.fromEntries(
    SOURCE_NAMES.map((name) => [name, s3Dataset(bucket, `${name}/`, proxy.endpoint)]),
  )
  const world = await makeWorld(
    { after: (ending) => void endings.push(ending as () => unknown) },
    { server, datasets, cache: { maxDatasets: random.pick([3, 4, 6]) } },
  )
  const outside = join(world.directory, 'outside')
  mkdirSync(join(outside, 'canary'), { recursive: true })
  writeFileSync(join(outside, 'canary', 'sings'), 'la la la')
  const damage = new Set<string>()
  return {
    world,
    proxy,
    outside,
    holds: [],
    damage,
    async changeSource(name) {
      for (let index = 0; index < SOURCES[name].objects; index += 4) await put(name, index)
    },
    damageSomeFile(chooser) {
      const paths = world
        .query<{ path: string }>(`SELECT path FROM copies WHERE state = 'ready' AND origin = 's3'`)
        .filter(({ path }) => existsSync(path))
      if (paths.length === 0) return undefined
      const { path } = chooser.pick(paths)
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
      return file
    },
    makeFolder() {
      folders += 1
      const name = `found-${folders}`
      const folder = join(outside, name)
      mkdirSync(join(folder, 'sub'), { recursive: true })
      for (let index = 0; index < 5; index++) {
        const path = join(folder, index < 2 ? 'sub' : '', `${index}.txt`)
        // Flushed, so that the blocks it takes are known when it is adopted.
        writeFileSync(path, `${name} ${index}`.repeat(500), { flush: true })
      }
      return { folder, name }
    },
    async close() {
      for (const ending of endings.reverse()) await ending()
      await proxy.close()
    },
  }
}
