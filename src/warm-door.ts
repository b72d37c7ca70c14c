import { readFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { dirname, join } from 'node:path'
import { chooseLease } from './cache/leases/choose-holder.js'
import { identifyCaller } from './cache/leases/identify-caller.js'
import { readReadyWords } from './cli/arguments/ready-words.js'
import { printReady } from './cli/output/print-ready.js'
import { findConfigFile } from './config/find-config-file.js'
import { chooseDoor, findDoor, NODE_DOOR, placeDoor } from './config/find-door.js'
import { readSettingsCache, settingsCachePath } from './config/settings-cache.js'
import { type ProcessHolder, parseLeaseTime } from './model/lease.js'
import { findHomeDirectory } from './platform/this-user.js'

/**
 * `asked`: only the whole program can go on. With a `config`, its file or none, the cache is one's own, and the short way
 * to it may do.
 */
type Outcome = 'done' | 'asked' | { readonly config: string | undefined }

/**
 * `dsc prepare` of a copy that the node's service has ready: the way that every job of a shared node goes every time.
 * It is bundled into one small file and parses no configuration, so that all of it takes a third of the time of Node's
 * own start (`npm run bench -- warm`). Every failure is left to the whole program.
 */
export async function prepareAtDoor(argv: readonly string[], readVersion: () => string): Promise<Outcome> {
  try {
    return await takeAndPrint(argv, readVersion)
  } catch {
    return 'asked'
  }
}

async function takeAndPrint(argv: readonly string[], readVersion: () => string): Promise<Outcome> {
  const { env: environment } = process
  const words = readReadyWords(argv)
  if (words === undefined || environment.DSC_LOG) return 'asked' // there would be nothing of it in the log
  const { config, path } = findDoorQuickly(words.config, readVersion)
  if (path === undefined) return { config }
  // Of root the service believes whose shares a job has, which the whole program looks up.
  if (process.geteuid?.() === 0 && (environment.SLURM_JOB_USER || environment.SLURM_JOB_ACCOUNT))
    return 'asked'
  const { name, task, ttl } = words
  const ttlMs = ttl === undefined ? undefined : parseLeaseTime(ttl)
  const caller = identifyCaller({ environment, task, ttlMs, identify: nameProcess })
  const { takeReadyAtDoor } = await import('./agent/door/take-ready.js') // not before: `node:net` takes 3 ms to load
  const taken = await takeReadyAtDoor(path, { name, lease: chooseLease(caller, Date.now()) })
  if (taken === undefined) return 'asked'
  printReady(taken, words)
  return 'done'
}

/** Names a process to the service, which takes the pid alone and identifies the process itself. */
function nameProcess(pid: number): ProcessHolder {
  const place = { machine: 'unknown', bootId: 'unknown', pidNamespace: 'unknown' }
  return { kind: 'process', host: hostname(), pid, startTicks: '0', ...place }
}

/**
 * Finds the door as `loadConfig` does, from the least of the configuration. Throws if only the whole program can tell.
 */
function findDoorQuickly(
  explicitPath: string | undefined,
  readVersion: () => string,
): { readonly config: string | undefined; readonly path: string | undefined } {
  const { env: environment } = process
  const homeDirectory = findHomeDirectory()
  const from = { environment, workingDirectory: process.cwd(), homeDirectory }
  const { path: filePath, ignored } = findConfigFile({ ...from, explicitPath })
  if (ignored) throw new Error('the whole program says which file it ignores')
  const chosen = chooseDoor({ ...from, filePath })
  if (chosen !== 'usual') return { config: filePath, path: chosen?.path }
  const named = filePath && readNamedDoor(filePath, { homeDirectory, readVersion })
  const path = placeDoor(named ?? NODE_DOOR, { folder: dirname(filePath ?? '/'), homeDirectory })
  const door = findDoor({ door: path === undefined ? undefined : { path, isNamed: false } })
  return { config: filePath, path: door }
}

/** The door that this file names, which it seldom does. */
function readNamedDoor(
  filePath: string,
  from: { readonly homeDirectory: string; readonly readVersion: () => string },
): string | undefined {
  const text = readFileSync(filePath, 'utf8')
  if (!/\bdoor\b/.test(text)) return undefined
  const cacheHome = process.env.XDG_CACHE_HOME || join(from.homeDirectory, '.cache')
  const origin = { path: filePath, text, version: from.readVersion() }
  const parsed = readSettingsCache(settingsCachePath(cacheHome, filePath), origin)
  if (parsed === undefined) throw new Error('the file has to be parsed')
  return parsed.settings.agent?.door
}
