import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { DscError } from '../failure/dsc-error.js'
import { findHostName } from '../platform/host-name.js'
import type { Config } from './config.js'
import { type FindOptions, findConfigFile } from './find-config-file.js'
import { type Overrides, resolveSettings } from './resolve-settings.js'
import { readSettingsCache, settingsCachePath, writeSettingsCache } from './settings-cache.js'

/** The inputs of the configuration. Nothing else reads the environment. */
export interface LoadOptions extends Omit<FindOptions, 'user'> {
  /** Default: the kernel's name for this machine, up to its first dot. */
  readonly hostName?: string
  /** Version of dsc, so that a new version checks the file again. Default: `0`. */
  readonly version?: string | undefined
  /** Flags, which override file and environment. Default: none. */
  readonly overrides?: Overrides
}

/**
 * Finds, checks and completes the configuration. Precedence: flags, environment (DSC_NODE, DSC_CACHE_ROOT, DSC_RECORD),
 * file, defaults. Without a file the defaults work for one user on one machine. Throws CONFIG_INVALID with the line of
 * each mistake.
 */
export async function loadConfig(options: LoadOptions): Promise<Config> {
  const { environment, homeDirectory } = options
  const { path: filePath, ignored: ignoredFile } = findConfigFile(options)
  const cacheHome = environment.XDG_CACHE_HOME || join(homeDirectory, '.cache')
  const parsed =
    filePath === undefined
      ? { settings: {}, lines: {} }
      : await readSettings(filePath, { cacheHome, version: options.version ?? '0' })
  return resolveSettings({
    ...parsed,
    filePath,
    ignoredFile,
    folder: filePath === undefined ? options.workingDirectory : dirname(filePath),
    workingDirectory: options.workingDirectory,
    homeDirectory,
    cacheHome,
    stateHome: environment.XDG_STATE_HOME || join(homeDirectory, '.local', 'state'),
    hostName: options.hostName ?? findHostName(),
    environment,
    overrides: options.overrides ?? {},
  })
}

async function readSettings(path: string, from: { cacheHome: string; version: string }) {
  const origin = { path, text: readText(path), version: from.version }
  const cachePath = settingsCachePath(from.cacheHome, path)
  const remembered = readSettingsCache(cachePath, origin)
  if (remembered) return remembered
  const { parseSettings } = await import('./parse-settings.js')
  const parsed = parseSettings(origin.text, path)
  writeSettingsCache(cachePath, origin, parsed)
  return parsed
}

function readText(filePath: string): string {
  try {
    return readFileSync(filePath, 'utf8')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === undefined) throw error
    throw new DscError('CONFIG_INVALID', `cannot read the configuration file ${filePath}: ${code}`, {
      hint: 'make it readable, or name another with --config',
      cause: error,
    })
  }
}
