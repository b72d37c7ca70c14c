import type { Stats } from 'node:fs'
import { readGroups } from './group-membership.js'

const WRITE_OF_GROUP = 0o020
const WRITE_OF_OTHERS = 0o002

/** Names those who may write to a file or folder besides `user` and root: `everybody`, or `the group 64000`. */
export function findOtherWriters(
  { mode, gid }: Pick<Stats, 'mode' | 'gid'>,
  user: { readonly uid: number; readonly gid: number },
  groups = readGroups,
): string | undefined {
  if (mode & WRITE_OF_OTHERS) return 'everybody'
  if (!(mode & WRITE_OF_GROUP) || gid === 0) return undefined // the group of root has only trusted members
  return gid === user.gid && isPrivateGroup(user, groups) ? undefined : `the group ${gid}`
}

/**
 * Whether nobody else is in the user's group. Debian and Red Hat give each user a private group of the same number,
 * with umask 002; somebody may have been added to it.
 */
function isPrivateGroup(
  { uid, gid }: { readonly uid: number; readonly gid: number },
  groups: () => string,
): boolean {
  if (gid !== uid) return false
  const lines = groups()
    .split('\n')
    .map((line) => line.split(':'))
  const [name, , , members = ''] = lines.find(([, , id]) => id === String(gid)) ?? []
  return members.split(',').every((member) => member === '' || member === name)
}
