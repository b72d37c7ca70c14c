import { existsSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import Database from 'better-sqlite3'
import { stringify } from 'yaml'
import { DSC, type Finished, killWithTest, type Running } from './dsc-processes.js'
import type { S3Server } from './s3-server.js'
import { temporaryDirectory } from './temporary-directory.js'
import { WorldDoor } from './world-door.js'

/** One machine with its own cache, record and configuration, driven through the real binary. */
export interface World {
  readonly directory: string
  readonly root: string
  readonly recordPath: string
  dsc(...words: readonly string[]): Promise<Finished>
  /** The same as a shell command line. */
  commandLine(...words: readonly string[]): string
  /** Options by which a program in this process, which imports dsc, finds the cache. */
  ofProgram(): { readonly configPath?: string }
  start(words: readonly string[], options?: StartOptions): Running
  /** Closes what uses this world before it ends with its test. */
  onEnd(close: () => Promise<unknown>): void
  /** Rewrites dsc.yaml. */
  configure(changes: WorldSettings): Promise<void>
  /** Current rows of the record, read without the product's code. */
  query<T>(sql: string): readonly T[]
}

interface StartOptions {
  readonly environment?: Readonly<Record<string, string>>
  readonly detached?: boolean
  /** The user of the process, if the test may choose (as root). */
  readonly owner?: { readonly uid: number; readonly gid: number }
}

export interface WorldSettings {
  /** Default: a file beside the configuration. */
  readonly record?: string
  /** Default: node-a. */
  readonly node?: string
  readonly cache?: Readonly<Record<string, unknown>>
  readonly stage?: Readonly<Record<string, unknown>>
  readonly agent?: Readonly<Record<string, unknown>>
  readonly datasets?: Readonly<Record<string, unknown>>
}

/**
 * Makes a world. `root` moves its cache, for example to a small file system. `retryFor` is how long it keeps trying a
 * source: default 3s, which ends tests of sources that are away soon; a fault to survive needs more on a busy machine.
 */
export async function makeWorld(
  context: Pick<TestContext, 'after'>,
  settings: WorldSettings & {
    readonly server?: S3Server
    readonly root?: string
    readonly retryFor?: string
  },
): Promise<World> {
  const closes: (() => Promise<unknown>)[] = []
  context.after(async () => {
    for (const close of closes) await close()
  })
  const startProcess = killWithTest(context) // runs before the removal of the folder that they write to
  const directory = await temporaryDirectory(context)
  const root = settings.root ?? join(directory, 'cache')
  const recordPath = join(directory, 'record.db')
  const startOwn = (words: readonly string[], options: StartOptions): Running =>
    startProcess([...DSC, ...words], {
      cwd: directory,
      detached: options.detached ?? false,
      owner: options.owner,
      environment: options.environment ?? {},
    })
  const door = WorldDoor.open(directory, (environment) => startOwn(['agent'], { environment }))
  const surroundings = {
    ...settings.server?.environment,
    DSC_RETRY_FOR: settings.retryFor ?? '3s',
    XDG_CACHE_HOME: join(directory, 'xdg'),
    XDG_CONFIG_HOME: join(directory, 'xdg'),
  }
  const start = (words: readonly string[], options: StartOptions = {}): Running => {
    const environment = { ...surroundings, ...options.environment }
    return door
      ? door.start(words, environment, (chosen) => startOwn(words, { ...options, environment: chosen }))
      : startOwn(words, { ...options, environment })
  }
  const configure = (changes: WorldSettings) =>
    writeFile(
      door?.configFile ?? join(directory, 'dsc.yaml'),
      stringify({
        record: changes.record ?? `sqlite://${recordPath}`,
        node: changes.node ?? 'node-a',
        cache: { root, ...changes.cache },
        ...(changes.stage ? { stage: changes.stage } : {}),
        ...(door ? { agent: door.addTo(changes.agent) } : changes.agent ? { agent: changes.agent } : {}),
        ...(changes.datasets ? { datasets: changes.datasets } : {}),
      }),
    )
  await configure(settings)
  return {
    directory,
    root,
    recordPath,
    start,
    onEnd: (close) => void closes.push(close),
    dsc: (...words) => start(words).finished,
    commandLine: (...words) => {
      const settings = Object.entries(door?.enter(words, surroundings) ?? {})
      const environment =
        settings.length > 0 ? ['env', ...settings.map(([name, value]) => `${name}=${value}`)] : []
      return [...environment, ...DSC, ...words].map((word) => `'${word}'`).join(' ')
    },
    ofProgram: () => {
      if (!door) return { configPath: join(directory, 'dsc.yaml') }
      Object.assign(process.env, { DSC_DOOR: door.enter(['prepare'], surroundings).DSC_DOOR })
      return {}
    },
    configure,
    query<T>(sql: string) {
      // Until the first command creates the record, it has no rows.
      if (!existsSync(recordPath)) return []
      const database = new Database(recordPath, { readonly: true, timeout: 10_000 })
      try {
        const isMade = database.prepare(`SELECT 1 FROM sqlite_master WHERE name = 'cache_record'`).get()
        return isMade ? (database.prepare(sql).all() as T[]) : []
      } finally {
        database.close()
      }
    },
  }
}

/** The dsc.yaml settings of a dataset on an S3 server under test. */
export function s3Dataset(bucket: string, prefix: string, endpoint: string) {
  return { source: `s3://${bucket}/${prefix}`, endpoint, region: 'us-east-1', pathStyle: true }
}

/** Writes files below `directory`; keys are relative paths. */
export async function writeTree(directory: string, files: Readonly<Record<string, string | Uint8Array>>) {
  for (const [path, content] of Object.entries(files)) {
    await mkdir(join(directory, path, '..'), { recursive: true })
    await writeFile(join(directory, path), content)
  }
}

/** Waits until `find` finds something. Fails after `limitMs`, naming what it waited for. */
export async function waitFor<T>(
  what: string,
  find: () => T | undefined | false | null | Promise<T | undefined | false | null>,
  limitMs = 60_000,
): Promise<T> {
  const endMs = Date.now() + limitMs
  for (;;) {
    const found = await find()
    if (found) return found
    if (Date.now() > endMs) throw new Error(`waited ${limitMs} ms in vain for ${what}`)
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}
