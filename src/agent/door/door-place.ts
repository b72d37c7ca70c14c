import { lstatSync, realpathSync, type Stats } from 'node:fs'
import { dirname } from 'node:path'
import { findOtherWriters } from '../../platform/other-writers.js'

const STICKY = 0o1000
/** Owner of what is outside of a user namespace, as seen in it: root's folders, in most containers without root. */
const UNSEEN_OWNER = 65_534

interface Folder extends Pick<Stats, 'uid' | 'gid' | 'mode'> {
  readonly path: string
}

/**
 * Why somebody could have put the folder of this socket there, with a service of their own, besides root, this user and
 * the owner of the folder; undefined: nobody could. A path in DSC_DOOR says nothing about the user who listens there.
 */
export function findOtherMaker(socketPath: string): string | undefined {
  return findReplaceable(listUpwards(realpathSync(dirname(socketPath))), process.geteuid?.() ?? 0)
}

/** The same for a folder and those above it, up to the root; `uid`: this user's. */
export function findReplaceable(folders: readonly Folder[], uid: number): string | undefined {
  const owner = folders[0]?.uid
  for (const [index, { path, ...found }] of folders.entries()) {
    const inner = folders[index - 1]
    if (inner === undefined) continue
    if (![0, uid, owner, UNSEEN_OWNER].includes(found.uid)) return `${path} belongs to uid ${found.uid}`
    const writers = findOtherWriters(found, found)
    // In such a folder nobody replaces what root or this user has made; what somebody else has, anybody could have.
    const isKept = (found.mode & STICKY) !== 0 && (inner.uid === 0 || inner.uid === uid)
    if (writers !== undefined && !isKept) return `${writers} may write to ${path}`
  }
  return undefined
}

function listUpwards(path: string): readonly Folder[] {
  const { uid, gid, mode } = lstatSync(path)
  return [{ path, uid, gid, mode }, ...(path === '/' ? [] : listUpwards(dirname(path)))]
}
