import { closeSync, fstatSync, mkdirSync, openSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { ParsedSettings } from './parse-settings.js'

/**
 * Caches the parsed settings of a dsc.yaml, so that a warm `dsc prepare` loads neither yaml nor zod: together they cost
 * 40 ms, as much as an empty Node process, and the file has almost never changed. An entry counts only for exactly the
 * same text and the same dsc.
 */

/** Bump when the shape of ParsedSettings changes; settings-cache.test.ts pins it. */
const FORMAT = 3

/** The inputs that settings were parsed from. */
interface SettingsOrigin {
  readonly path: string
  readonly text: string
  /** Version of dsc. */
  readonly version: string
}

interface Entry extends SettingsOrigin {
  readonly format: number
  readonly parsed: ParsedSettings
}

/**
 * The path of the entry for `configPath`. Beside the cache folder, not in it: copies live there. Two long paths may
 * share an entry, which records its own path. (Importing node:crypto for a hash costs 4 ms.)
 */
export function settingsCachePath(cacheHome: string, configPath: string): string {
  return join(cacheHome, 'dsc-config', `${encodeURIComponent(configPath).slice(-200)}.json`)
}

/** The cached settings of `origin`, or undefined. An entry that another user wrote does not count. */
export function readSettingsCache(cachePath: string, origin: SettingsOrigin): ParsedSettings | undefined {
  let file: number
  try {
    file = openSync(cachePath, 'r')
  } catch {
    return undefined // absent or unreadable: only slower
  }
  try {
    if (fstatSync(file).uid !== process.getuid?.()) return undefined
    const { format, path, text, version, parsed } = JSON.parse(readFileSync(file, 'utf8')) as Entry
    const isSame =
      format === FORMAT && path === origin.path && text === origin.text && version === origin.version
    return isSame ? parsed : undefined
  } catch (error) {
    if (error instanceof SyntaxError) return undefined // truncated by a full disk
    throw error
  } finally {
    closeSync(file)
  }
}

/** Caches `parsed`; does nothing if the folder is not writable: the cache only saves time. */
export function writeSettingsCache(cachePath: string, origin: SettingsOrigin, parsed: ParsedSettings): void {
  const partPath = `${cachePath}.${process.pid}`
  const entry: Entry = { format: FORMAT, ...origin, parsed }
  try {
    mkdirSync(dirname(cachePath), { recursive: true, mode: 0o700 })
    // The file may contain the record's password.
    writeFileSync(partPath, JSON.stringify(entry), { mode: 0o600 })
    renameSync(partPath, cachePath)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === undefined) throw error
  }
}
