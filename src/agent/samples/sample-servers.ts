import { join } from 'node:path'
import { DscError } from '../../failure/dsc-error.js'
import type { JudgePass } from '../../feed/storage/served-connection.js'
import { StorageServer } from '../../feed/storage/storage-server.js'
import type { FormatName, ToldDialect } from '../../model/sample-formats.js'
import { BackgroundThread } from '../../platform/background-thread.js'
import type { SendRule } from '../../platform/send-rule.js'
import { openSampleTable } from '../../samples/sample-table.js'
import type { SampleIndexData, SampleIndexReply } from './sample-index-thread.js'

/** How long a server stays open without connections, in ms. */
const IDLE_MS = 600_000
const SWEEP_MS = 60_000
/** Maximum number of lists made at once: each takes its own thread, and clients choose how many they ask for. */
const MAX_INDEXING = 4
/** Maximum number of servers for one holder of passes; each has a table in memory and a thread. */
const MAX_SERVED_BY_ONE = 16

/** Which files of a copy are samples. */
export interface SampleFilter {
  readonly split: string | undefined
  /** Extensions (without dots) or patterns; undefined: all files. */
  readonly only: readonly string[] | undefined
  /** The content of the files; undefined: the format of most bytes. */
  readonly format: FormatName | undefined
  /** How CSV is written, as far as the user says. */
  readonly dialect?: ToldDialect | undefined
}

/** A folder of a copy, and which of its files may be sent. */
interface ServedFolder {
  readonly copyId: string
  readonly path: string
  readonly split: string | undefined
  readonly rule: SendRule
}

/** Lists and serves the samples of this node's copies to feeds of other machines. */
export interface SampleServers {
  /**
   * The samples of a folder as a table; null if it has none. `indexing`: ask again; every file must be read first. The
   * result is kept on disk.
   */
  index(path: string, filter: SampleFilter): 'indexing' | Promise<Uint8Array | null>
  /**
   * Serves the folder's part of the samples in the table that a client sends. Resolves with the port. `by`: the holder
   * of a pass, who gets a server of their own. Rejects with TOO_MANY_REQUESTS when they have too many.
   */
  serve(folder: ServedFolder, readTable: () => Promise<Uint8Array>, by?: string): Promise<number>
  close(): Promise<void>
}

interface Index {
  readonly thread: BackgroundThread<never, SampleIndexReply>
  readonly found: Promise<Uint8Array | null>
  doneAtMs: number | undefined
}

interface Serving {
  readonly server: Promise<StorageServer>
  readonly by: string | undefined
  usedAtMs: number
}

/** Opens nothing yet: a copy's storage server starts when the first feed asks for its samples. */
export function openSampleServers(options: {
  readonly host: string
  readonly token: string | undefined
  /** Judges passes for the samples of a copy; absent: none is good. */
  readonly judgePass?: ((copyId: string) => JudgePass) | undefined
  /** The agent's certificate and key (PEM); undefined: samples are not encrypted either. */
  readonly tls: { readonly cert: string; readonly key: string } | undefined
  /** Where tables of samples are kept; undefined: nowhere. */
  readonly cacheFolder: string | undefined
}): SampleServers {
  const { host, token, judgePass, tls, cacheFolder } = options
  const indexes = new Map<string, Index>()
  const servings = new Map<string, Serving>()
  const reading = new Map<string, number>()
  const sweep = async () => {
    for (const [key, { doneAtMs }] of indexes)
      if (doneAtMs !== undefined && performance.now() - doneAtMs > IDLE_MS) indexes.delete(key) // nobody fetched it
    for (const [key, serving] of servings) {
      const server = await serving.server.catch(() => undefined)
      if (server && server.connectionCount > 0) serving.usedAtMs = performance.now()
      if (server && performance.now() - serving.usedAtMs < IDLE_MS) continue
      servings.delete(key)
      await server?.close().catch(() => {}) // nobody reads from it, or waits for its end
    }
  }
  const timer = setInterval(() => void sweep(), SWEEP_MS)
  timer.unref()
  return {
    index(path, { split, only, format, dialect }) {
      const folder = join(path, split ?? '')
      const key = JSON.stringify([folder, only, format, dialect])
      let index = indexes.get(key)
      if (index === undefined) {
        const running = [...indexes.values()].filter(({ doneAtMs }) => doneAtMs === undefined)
        if (running.length >= MAX_INDEXING) return 'indexing' // a later request starts it
        index = startIndex({ folder, cacheFolder, only, format, dialect })
        indexes.set(key, index)
      }
      if (index.doneAtMs === undefined) return 'indexing'
      indexes.delete(key)
      return index.found
    },
    async serve({ copyId, path, split, rule }, readTable, by) {
      const free = by === undefined ? () => {} : await takePlace(by, { servings, reading })
      const bytes = await readTable().finally(free)
      const table = openSampleTable(bytes)
      const root = join(path, split ?? '')
      const key = JSON.stringify([root, table.fingerprint, by])
      let serving = servings.get(key)
      if (serving === undefined) {
        serving = {
          server: StorageServer.open({
            ...{ folder: { root, table }, rule, host, port: 0, token, tls },
            judgePass: judgePass?.(copyId),
          }),
          by,
          usedAtMs: 0,
        }
        servings.set(key, serving)
        serving.server.catch(() => servings.delete(key))
      }
      serving.usedAtMs = performance.now()
      return (await serving.server).port
    },
    async close() {
      clearInterval(timer)
      for (const { thread } of indexes.values()) await thread.stop()
      for (const { server } of servings.values()) await (await server.catch(() => undefined))?.close()
    },
  }
}

/**
 * Takes a place for one more table of a pass's holder, who may send any. Their servers without connections make room.
 * Call the result once the table is read: then its server counts.
 */
async function takePlace(
  by: string,
  { servings, reading }: { readonly servings: Map<string, Serving>; readonly reading: Map<string, number> },
): Promise<() => void> {
  const own = [...servings].filter(([, serving]) => serving.by === by)
  let taken = own.length + (reading.get(by) ?? 0)
  for (const [key, { server }] of own) {
    if (taken < MAX_SERVED_BY_ONE) break
    const opened = await server.catch(() => undefined)
    if (opened && opened.connectionCount > 0) continue
    if (servings.delete(key)) taken -= 1
    await opened?.close()
  }
  if (taken >= MAX_SERVED_BY_ONE)
    throw new DscError(
      'TOO_MANY_REQUESTS',
      `the agent serves samples for each user of another node ${MAX_SERVED_BY_ONE} times at once`,
      { hint: 'close feeds that are done' },
    )
  reading.set(by, (reading.get(by) ?? 0) + 1)
  return () => {
    const left = reading.get(by)! - 1
    if (left > 0) reading.set(by, left)
    else reading.delete(by)
  }
}

/** Indexes in a thread: reading every file would hold up the agent. */
function startIndex(data: SampleIndexData): Index {
  const { promise: found, resolve, reject } = Promise.withResolvers<Uint8Array | null>()
  const thread = new BackgroundThread<never, SampleIndexReply>(
    new URL('./sample-index-thread.js', import.meta.url),
    {
      data,
      onReply: (reply) => ('failure' in reply ? reject(new Error(reply.failure)) : resolve(reply.table)),
      onFailure: reject,
    },
  )
  const index: Index = { thread, found, doneAtMs: undefined }
  const done = () => {
    index.doneAtMs = performance.now()
  }
  found.then(done, done)
  return index
}
