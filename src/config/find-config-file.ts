import { existsSync, lstatSync, type Stats, statSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { DscError } from '../failure/dsc-error.js'
import { findOtherWriters } from '../platform/other-writers.js'

/** A user, as file permissions see one. */
interface User {
  readonly uid: number
  readonly gid: number
}

export interface FindOptions {
  /** --config */
  readonly explicitPath: string | undefined
  readonly environment: Readonly<Record<string, string | undefined>>
  readonly workingDirectory: string
  readonly homeDirectory: string
  /** Default: the user of this process. */
  readonly user?: User
}

/** The file in effect, and a nearer dsc.yaml that is ignored, because somebody else could have written it. */
interface FoundConfigFile {
  readonly path: string | undefined
  readonly ignored?: { readonly path: string; readonly reason: string } | undefined
}

/**
 * Finds the configuration file. In this order: `explicitPath` (--config), $DSC_CONFIG, dsc.yaml in the working folder
 * and its parents, $XDG_CONFIG_HOME/dsc/dsc.yaml, /etc/dsc/dsc.yaml. A named but missing file is an error: falling back
 * to the next one would surprise.
 *
 * A dsc.yaml decides where credentials go and which files dsc creates, so a stranger's must not count. On the way up, a
 * file counts only if this user or root owns it and its folder, and only they can write to either. The walk ends at the
 * home folder and at the first folder of somebody else.
 */
export function findConfigFile(options: FindOptions): FoundConfigFile {
  const { explicitPath, environment, workingDirectory } = options
  for (const [named, by] of [
    [explicitPath, '--config'],
    [environment.DSC_CONFIG || undefined, 'DSC_CONFIG'],
  ] as const) {
    if (named === undefined) continue
    const path = resolve(workingDirectory, named)
    if (isFile(path)) return { path }
    throw new DscError('CONFIG_INVALID', `${by} names ${path}, expected a file, found none`, {
      hint: `dsc init --config ${path}`,
    })
  }
  const above = findAbove(options)
  if (above.path !== undefined) return above
  const path = [placeUserConfig(options), '/etc/dsc/dsc.yaml'].find(isFile)
  return { ...above, path }
}

/** The dsc.yaml that counts in every folder for this user. */
export function placeUserConfig({
  environment,
  homeDirectory,
}: Pick<FindOptions, 'environment' | 'homeDirectory'>): string {
  return join(environment.XDG_CONFIG_HOME || join(homeDirectory, '.config'), 'dsc', 'dsc.yaml')
}

function findAbove(options: FindOptions): FoundConfigFile {
  const { workingDirectory, homeDirectory } = options
  const user = options.user ?? { uid: process.geteuid?.() ?? 0, gid: process.getegid?.() ?? 0 }
  let ignored: FoundConfigFile['ignored']
  const folders = listParents(workingDirectory)
  // Usually no such file exists, and it takes a millisecond to find out who owns the folders.
  if (!folders.some((folder) => existsSync(join(folder, 'dsc.yaml')))) return { path: undefined }
  for (const folder of folders) {
    const path = join(folder, 'dsc.yaml')
    const stranger = findStranger(folder, user)
    if (isFile(path)) {
      const reason =
        stranger ?? findWriters(folder, user) ?? findStranger(path, user) ?? findWriters(path, user)
      if (reason === undefined) return { path, ignored }
      ignored ??= { path, reason }
    }
    if (stranger !== undefined || folder === homeDirectory) break
  }
  return { path: undefined, ignored }
}

/** Names the other user who owns this, or the link that leads there. Root is no stranger. */
function findStranger(path: string, user: User): string | undefined {
  const owners = [lookAt(path, lstatSync), lookAt(path, statSync)].map((stats) => stats?.uid ?? 0)
  const stranger = owners.find((uid) => uid !== user.uid && uid !== 0)
  return stranger === undefined ? undefined : `${path} belongs to another user (uid ${stranger})`
}

/** Describes who else can write to this. */
function findWriters(path: string, user: User): string | undefined {
  const found = lookAt(path, statSync)
  const writers = found && findOtherWriters(found, user)
  return writers && `${writers} may write to ${path}`
}

function listParents(folder: string): string[] {
  const parent = dirname(folder)
  return parent === folder ? [folder] : [folder, ...listParents(parent)]
}

function isFile(path: string): boolean {
  const found = lookAt(path, statSync)
  return found !== undefined && !found.isDirectory()
}

function lookAt(path: string, look: typeof statSync): Stats | undefined {
  try {
    return look(path, { throwIfNoEntry: false })
  } catch (error) {
    // A parent that is not readable cannot hold the file in effect, nor can a name that leads nowhere.
    const { code = '' } = error as NodeJS.ErrnoException
    if (['EACCES', 'ELOOP', 'ENAMETOOLONG', 'ENOTDIR'].includes(code)) return undefined
    throw error
  }
}
