import { execFile } from 'node:child_process'
import { existsSync, lstatSync, readdirSync, readFileSync, type Stats } from 'node:fs'
import { dirname } from 'node:path'
import { promisify } from 'node:util'
import { DscError } from '../../failure/dsc-error.js'
import { findOtherWriters } from '../../platform/other-writers.js'
import type { Account } from '../../platform/user-directory.js'
import { type NodeFacts, SERVICE_USER } from './missing-steps.js'

const STICKY = 0o1000

/** Reads the parts of a node that are here. Throws CACHE_ROOT_INVALID, as `isGiven` does. */
export async function readFacts(
  unit: string,
  { root, user }: { readonly root: string; readonly user: Account | undefined },
): Promise<NodeFacts> {
  const hasSystemd = existsSync('/run/systemd/system')
  return {
    hasUser: user !== undefined,
    hasRoot: isGiven(root, user),
    service: hasSystemd
      ? { isEnabled: await says('is-enabled', unit), isActive: await says('is-active', unit) }
      : undefined,
    hasPackagedUnit: existsSync(`/usr/lib/systemd/system/${unit}`),
    readText: (path) => (existsSync(path) ? readFileSync(path, 'utf8') : undefined),
  }
}

/**
 * Whether the folder of the cache is there and belongs to the service. Throws CACHE_ROOT_INVALID unless it is missing, or
 * an empty folder of root's, where only root and the service could replace it.
 */
export function isGiven(root: string, user: Account | undefined): boolean {
  const stranger = findStranger(dirname(root), user)
  const fail = (message: string, hint: string) => {
    throw new DscError('CACHE_ROOT_INVALID', message, { hint })
  }
  if (stranger !== undefined)
    fail(
      `${root} lies in ${stranger}, expected folders that only root may write to`,
      'dsc setup --cache-root <dir> takes another one, such as /nvme/dsc',
    )
  const found = look(root)
  if (found === undefined) return false
  if (!found.isDirectory()) fail(`${root} is no folder`, 'dsc setup --cache-root <dir> takes another one')
  if (user !== undefined && found.uid === user.uid) return true
  const isEmpty = readdirSync(root).length === 0
  if (found.uid !== 0 || !isEmpty)
    fail(
      `${root} belongs to uid ${found.uid}${isEmpty ? '' : ' and has files'}, expected an empty folder of root, or one of user ${SERVICE_USER}`,
      `sudo chown -R ${SERVICE_USER}:${SERVICE_USER} ${root} && sudo chmod -R go-w ${root} hands a cache over; --cache-root <dir> takes another folder`,
    )
  return false
}

/**
 * Throws SETUP_FAILED if somebody besides root could replace one of these files, or change a folder above: as the
 * service it would act for them.
 */
export function requireRootsOwn(files: readonly string[]): void {
  for (const file of files) {
    const stranger = findStranger(file, undefined)
    if (stranger === undefined) continue
    throw new DscError('SETUP_FAILED', `the service would run ${file}, which lies in ${stranger}`, {
      hint: 'install dsc where only root may write: sudo install dsc-linux-x64 /usr/local/bin/dsc, or the deb',
    })
  }
}

/** The nearest existing file or folder on the way up that others than root (and the service) own or may write to. */
function findStranger(path: string, user: Account | undefined): string | undefined {
  const found = look(path)
  if (found !== undefined) {
    const isOurs = found.uid === 0 || found.uid === user?.uid
    if (!isOurs) return `${path} of uid ${found.uid}`
    const writers = found.mode & STICKY || found.isSymbolicLink() ? undefined : findOtherWriters(found, found)
    if (writers !== undefined) return `${path}, where ${writers} may write`
  }
  return path === '/' ? undefined : findStranger(dirname(path), user)
}

function look(path: string): Stats | undefined {
  return lstatSync(path, { throwIfNoEntry: false })
}

/** Whether systemctl agrees. */
async function says(question: 'is-enabled' | 'is-active', unit: string): Promise<boolean> {
  return promisify(execFile)('systemctl', ['--quiet', question, unit]).then(
    () => true,
    () => false,
  )
}
