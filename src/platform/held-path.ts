import { chmodSync, closeSync, constants, fstatSync, mkdirSync, openSync, readlinkSync } from 'node:fs'
import { dirname } from 'node:path'
import { atEndNow } from '../failure/closers.js'
import { DscError } from '../failure/dsc-error.js'
import { unlessCode } from '../failure/unless-code.js'
import { foreignEntry, HAS_DESCRIPTOR_PATHS, HOLD, isSingleName, O_PATH } from './held-folder.js'
import { makeFolder } from './shared-folder.js'

const HELD_PREFIX = /^(\/proc\/self\/fd\/\d+)\//

/**
 * Calls `act` with a path to the same entry. For a path below a held folder, opens the folders on the way one by one,
 * without following links, and creates missing ones if `makesFolders`; uses any other path unchanged. Throws
 * CACHE_ROOT_INVALID if a name on the way is empty, `.` or `..`: paths come from manifests on disk, and must not lead
 * out of the held folder.
 */
export function onHeldPath<T>(
  path: string,
  act: (path: string) => T,
  options: { readonly makesFolders?: boolean } = {},
): T {
  const prefix = HELD_PREFIX.exec(path)?.[1]
  const names = prefix === undefined ? [] : path.slice(prefix.length + 1).split('/')
  if (prefix === undefined) {
    if (options.makesFolders) makeFolder(dirname(path))
    return act(path)
  }
  const odd = names.find((name) => !isSingleName(name))
  if (odd !== undefined)
    throw new DscError(
      'CACHE_ROOT_INVALID',
      `${resolveHeldPath(path)}: expected a path that stays below its folder, found ${JSON.stringify(odd)} in it`,
      { hint: 'dsc verify finds what was changed; dsc cleanup removes what is half done' },
    )
  let parent = prefix
  let descriptor: number | undefined
  try {
    for (const name of names.slice(0, -1)) {
      const next = openStep(`${parent}/${name}`, options)
      if (descriptor !== undefined) closeSync(descriptor)
      descriptor = next
      parent = `/proc/self/fd/${next}`
    }
    return act(`${parent}/${names.at(-1)}`)
  } finally {
    if (descriptor !== undefined) closeSync(descriptor)
  }
}

/** Changes the mode of a regular file that has only this name. False: it is something else. Never follows a link. */
export function changeFileMode(path: string, mode: number): boolean {
  const descriptor = openSync(path, O_PATH | constants.O_NOFOLLOW)
  using _ = atEndNow(() => closeSync(descriptor))
  const stats = fstatSync(descriptor)
  if (!stats.isFile() || stats.nlink > 1) return false
  chmodSync(HAS_DESCRIPTOR_PATHS ? `/proc/self/fd/${descriptor}` : path, mode)
  return true
}

/** The current path of a held path, for people and for other processes. */
export function resolveHeldPath(path: string): string {
  const prefix = HELD_PREFIX.exec(`${path}/`)?.[1]
  return prefix === undefined ? path : readlinkSync(prefix) + path.slice(prefix.length)
}

function openStep(path: string, { makesFolders }: { readonly makesFolders?: boolean }): number {
  const flags = HOLD | constants.O_NOFOLLOW
  try {
    return openSync(path, flags)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOTDIR' || code === 'ELOOP') throw foreignEntry(resolveHeldPath(path), 'a folder')
    if (code !== 'ENOENT' || !makesFolders) throw error
  }
  unlessCode(['EEXIST'], () => mkdirSync(path))
  return openSync(path, flags)
}
