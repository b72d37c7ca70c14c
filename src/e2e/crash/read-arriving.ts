import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { ArrivingReader } from '../../cache/arrivals/arriving-reader.js'
import { Manifest } from '../../cache/manifest/manifest.js'
import type { CrashWorld } from './crash-world.js'

/** A reader waits for an object for so long, ms; its stager may have been killed. */
const MAX_WAIT_MS = 500
const PAUSE_MS = 10

/** What readers of arriving copies saw. */
export interface ArrivingReads {
  /** Objects that were read while their copy was staged. */
  readonly objects: number
  /** Bytes that were not the source's. */
  readonly broken: readonly string[]
}

/** Reads the copies that are being staged, as feeds do, object by object from the last one on, until `signal`. */
export async function readArriving(crash: CrashWorld, signal: AbortSignal): Promise<ArrivingReads> {
  const reader = new ArrivingReader('the crash test')
  const broken: string[] = []
  let objects = 0
  try {
    while (!signal.aborted) {
      const stagings = await crash.query<{ directory: string }>(
        `SELECT directory FROM copies WHERE state = 'staging'`,
      )
      for (const copy of stagings)
        for (const [key] of [...etagsOf(copy.directory)].toReversed()) {
          if (signal.aborted) break
          const path = await waitFor(reader, copy, key, signal)
          const problem = path && findDifference(copy, { key, path, damage: crash.damage })
          if (problem) broken.push(problem)
          if (path) objects += 1
        }
      await sleep(PAUSE_MS)
    }
  } finally {
    reader.close()
  }
  return { objects, broken }
}

/** Where an object lies once it is there; undefined where it did not come in time. */
async function waitFor(
  reader: ArrivingReader,
  copy: { readonly directory: string },
  key: string,
  signal: AbortSignal,
): Promise<string | undefined> {
  const limit = AbortSignal.any([signal, AbortSignal.timeout(MAX_WAIT_MS)])
  try {
    const look = await reader.waitFor(copy, key, limit)
    return look.outcome === 'there' ? look.path : undefined
  } catch (error) {
    if (limit.aborted) return undefined
    throw error
  }
}

/** Says how bytes differ from what the manifest promises; its listing may have been made anew meanwhile. */
function findDifference(
  { directory }: { readonly directory: string },
  read: { readonly key: string; readonly path: string; readonly damage: ReadonlySet<string> },
): string | undefined {
  const before = etagsOf(directory).get(read.key)
  const bytes = readIfThere(read.path)
  const after = etagsOf(directory).get(read.key)
  if (bytes === undefined || before === undefined || before !== after || !/^[0-9a-f]{32}$/.test(before))
    return undefined
  const found = createHash('md5').update(bytes).digest('hex')
  if (found === before || read.damage.has(found)) return undefined
  return `a reader of arriving ${read.path} got bytes of MD5 ${found}, expected ${before}`
}

function etagsOf(directory: string): ReadonlyMap<string, string> {
  const etags = new Map<string, string>()
  const manifest = Manifest.findPublished(directory)
  try {
    for (const { key, etag } of manifest?.entries('kept') ?? []) etags.set(key, etag ?? '')
  } finally {
    manifest?.close()
  }
  return etags
}

/** Undefined where it was published or given up this moment. */
function readIfThere(path: string): Buffer | undefined {
  try {
    return readFileSync(path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}
