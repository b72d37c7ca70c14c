import {
  type BigIntStats,
  closeSync,
  fstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import type { ParsedSettings } from './parse-settings.js'

/**
 * Remembers what a dsc.yaml said, so that a warm `dsc prepare` loads neither yaml nor zod: together they
 * cost 40 ms, nearly twice what an empty Node process does, and the file has almost never changed.
 * An entry counts only for the very same file (device, inode, size, both times) and the same dsc.
 */

/** Bump when the shape of ParsedSettings changes; settings-cache.test.ts pins it. */
const FORMAT = 1

interface Entry {
  readonly stamp: string
  readonly parsed: ParsedSettings
}

/** Time that a file must have rested before its entry is written: times of files step by up to 2 s (vfat). */
const REST_MS = 2000

/**
 * Where the entry for `configPath` lives. Beside the cache folder, not in it: copies live there. Two long
 * paths may share an entry; the stamp tells them apart. (Importing node:crypto for a hash costs 4 ms.)
 */
export function settingsCachePath(cacheHome: string, configPath: string): string {
  return join(cacheHome, 'dsc-config', `${encodeURIComponent(configPath).slice(-200)}.json`)
}

/** What identifies the contents of `configPath` without reading it. */
export function stampOf(stats: BigIntStats, configPath: string, dscVersion: string): string {
  const { dev, ino, size, mtimeNs, ctimeNs } = stats
  return [FORMAT, dscVersion, dev, ino, size, mtimeNs, ctimeNs, configPath].join(' ')
}

/** The remembered settings for `stamp`, or undefined. An entry that another user wrote does not count. */
export function readSettingsCache(cachePath: string, stamp: string): ParsedSettings | undefined {
  let file: number
  try {
    file = openSync(cachePath, 'r')
  } catch {
    return undefined // absent or unreadable: only slower
  }
  try {
    if (fstatSync(file).uid !== process.getuid?.()) return undefined
    const entry = JSON.parse(readFileSync(file, 'utf8')) as Entry
    return entry.stamp === stamp ? entry.parsed : undefined
  } catch (error) {
    if (error instanceof SyntaxError) return undefined // cut off by a full disk
    throw error
  } finally {
    closeSync(file)
  }
}

/**
 * Remembers `parsed` for `stats`. Does nothing where the file changed a moment ago (its times could stay
 * the same after another change) or where the folder cannot be written: the cache only saves time.
 */
export function writeSettingsCache(
  cachePath: string,
  parsed: ParsedSettings,
  options: { stats: BigIntStats; stamp: string; nowMs: number },
): void {
  if (Number(options.stats.ctimeMs) > options.nowMs - REST_MS) return
  const partPath = `${cachePath}.${process.pid}`
  const entry: Entry = { stamp: options.stamp, parsed }
  try {
    mkdirSync(dirname(cachePath), { recursive: true, mode: 0o700 })
    // The file may hold the password of the record.
    writeFileSync(partPath, JSON.stringify(entry), { mode: 0o600 })
    renameSync(partPath, cachePath)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === undefined) throw error
  }
}

/** Stats with nanoseconds, or undefined when the file is gone. */
export function readStats(path: string): BigIntStats | undefined {
  return statSync(path, { bigint: true, throwIfNoEntry: false })
}
