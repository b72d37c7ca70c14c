import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { ArrivingReader } from '../../cache/arrivals/arriving-reader.js'
import { filesDirectory } from '../../cache/cache-layout.js'
import { Manifest } from '../../manifest/manifest.js'
import type { CrashWorld } from './crash-world.js'

/** A reader waits for an object for so long, ms; its stager may have been killed. */
const MAX_WAIT_MS = 500
const PAUSE_MS = 10

/** What readers of arriving copies saw. */
export interface ArrivingReads {
  /** Objects that were read while their copy was staged. */
  readonly objects: number
  /** Ranges that were read while their object was not proven. */
  readonly ranges: number
  /** Bytes that were not the source's. */
  readonly broken: readonly string[]
}

/** A range as of a sample in a shard, bytes; its place in the object is drawn. */
const RANGE_BYTES = 50_000

/**
 * Reads the copies that are being staged, as feeds do, from the last object on, until `signal`: a range of each as soon
 * as it is written, and each once it is proven.
 */
export async function readArriving(crash: CrashWorld, signal: AbortSignal): Promise<ArrivingReads> {
  const reader = new ArrivingReader('the crash test')
  const broken: string[] = []
  let [objects, ranges] = [0, 0]
  try {
    while (!signal.aborted) {
      const stagings = await crash.query<{ directory: string }>(
        `SELECT directory FROM copies WHERE state = 'staging'`,
      )
      for (const copy of stagings)
        for (const [key, etag] of [...etagsOf(copy.directory)].toReversed()) {
          if (signal.aborted) break
          const read = { ...copy, key, source: crash.bytesOf(etag), damage: crash.damage }
          const [range, path] = await Promise.all([
            readRange(reader, read, signal),
            waitFor(reader, copy, key, signal),
          ])
          if (range === 'broken') broken.push(`a reader of a range of arriving ${key} got other bytes`)
          if (range !== 'none') ranges += 1
          const problem = path && findDifference(copy, { key, path, damage: crash.damage })
          if (problem) broken.push(problem)
          if (path) objects += 1
        }
      await sleep(PAUSE_MS)
    }
  } finally {
    reader.close()
  }
  return { objects, ranges, broken }
}

/** Waits for a range and compares it with what the source holds; `none`: it did not come in time, or is another's. */
async function readRange(
  reader: ArrivingReader,
  read: {
    readonly directory: string
    readonly key: string
    readonly source: Buffer | undefined
    readonly damage: ReadonlySet<string>
  },
  signal: AbortSignal,
): Promise<'good' | 'broken' | 'none'> {
  const { directory, key, source, damage } = read
  if (source === undefined || source.length < RANGE_BYTES) return 'none'
  const offset = Math.floor(Math.random() * (source.length - RANGE_BYTES))
  const limit = AbortSignal.any([signal, AbortSignal.timeout(MAX_WAIT_MS)])
  const outcome = await reader
    .awaitAsked({ directory }, [key, offset, RANGE_BYTES], { signal: limit })
    .catch(() => 'none' as const)
  const bytes = outcome === 'there' ? readIfThere(`${filesDirectory(directory)}/${key}`) : undefined
  // Its listing may have been made anew meanwhile.
  if (bytes === undefined || !isListed(directory, { key, source })) return 'none'
  const end = offset + RANGE_BYTES
  if (damage.has(createHash('md5').update(bytes).digest('hex'))) return 'none' // taken from a copy that was spoilt
  return bytes.subarray(offset, end).equals(source.subarray(offset, end)) ? 'good' : 'broken'
}

function isListed(
  directory: string,
  { key, source }: { readonly key: string; readonly source: Buffer },
): boolean {
  return etagsOf(directory).get(key) === createHash('md5').update(source).digest('hex')
}

/** Where an object lies once it is there; undefined where it did not come in time. */
async function waitFor(
  reader: ArrivingReader,
  { directory }: { readonly directory: string },
  key: string,
  signal: AbortSignal,
): Promise<string | undefined> {
  const limit = AbortSignal.any([signal, AbortSignal.timeout(MAX_WAIT_MS)])
  try {
    const outcome = await reader.awaitAsked({ directory }, key, { signal: limit })
    return outcome === 'there' ? `${filesDirectory(directory)}/${key}` : undefined
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
