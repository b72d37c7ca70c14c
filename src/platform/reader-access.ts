import { chmodSync, chownSync } from 'node:fs'
import { DscError } from '../failure/dsc-error.js'
import { openCLibrary } from './c-library.js'

/** Users and groups that may read a folder beside its owner, by id. */
export interface Readers {
  readonly users: readonly number[]
  readonly groups: readonly number[]
}

/** Sets the access control list of a file. Returns false where its file system has none. */
export type SetList = (path: string, list: Buffer) => boolean

const OWNER_ALONE = 0o700
const WITH_GROUP = 0o750
/** Name and layout: `acl(5)`, `include/uapi/linux/posix_acl_xattr.h`. */
const LIST = 'system.posix_acl_access'
const LIST_VERSION = 2
const [USER_OBJ, USER, GROUP_OBJ, GROUP, MASK, OTHER] = [0x01, 0x02, 0x04, 0x08, 0x10, 0x20]
const [NOTHING, READ_AND_ENTER, ALL] = [0, 5, 7]
const NO_ID = 0xffff_ffff

/**
 * Lets only these readers and the owner into a folder, and so to everything in it. By an access control list,
 * which needs no right but to own the folder; where the file system has none, one group can be that of the folder, if
 * the owner is a member. Throws CACHE_ROOT_INVALID where neither works, and then the folder is its owner's alone.
 */
export function letIn(folder: string, { users, groups }: Readers, setList = loadSetList()): void {
  chmodSync(folder, OWNER_ALONE) // first: if a step below fails, the folder is closed
  if (setList(folder, formatList({ users, groups })) || users.length + groups.length === 0) return
  const [group] = groups
  if (group === undefined || users.length + groups.length > 1)
    throw new DscError('CACHE_ROOT_INVALID', `the file system of ${folder} has no access control lists`, {
      hint: 'name one group in readers:, of which the owner of the cache is a member',
    })
  try {
    chownSync(folder, -1, group)
  } catch (error) {
    throw new DscError(
      'CACHE_ROOT_INVALID',
      `cannot give ${folder} to the group ${group} (${(error as NodeJS.ErrnoException).code}): its file system has no access control lists, and user ${process.geteuid?.()} is not in that group`,
      { hint: 'make the owner of the cache a member of the group, then start dsc agent again', cause: error },
    )
  }
  chmodSync(folder, WITH_GROUP)
}

/** Undoes `letIn`: the folder has this mode and no list. */
export function letEverybodyIn(folder: string, mode: number, setList = loadSetList()): void {
  setList(folder, formatList({ users: [], groups: [] })) // what only the mode says is no list
  chmodSync(folder, mode)
}

/** The list in the form that the kernel takes, each kind in order of ids. */
function formatList({ users, groups }: Readers): Buffer {
  const byId = (one: number, other: number) => one - other
  const named = [
    ...users.toSorted(byId).map((id) => [USER, READ_AND_ENTER, id] as const),
    [GROUP_OBJ, NOTHING, NO_ID] as const,
    ...groups.toSorted(byId).map((id) => [GROUP, READ_AND_ENTER, id] as const),
  ]
  const entries = [
    [USER_OBJ, ALL, NO_ID] as const,
    ...named,
    ...(named.length > 1 ? [[MASK, READ_AND_ENTER, NO_ID] as const] : []),
    [OTHER, NOTHING, NO_ID] as const,
  ]
  const list = Buffer.alloc(4 + 8 * entries.length)
  list.writeUInt32LE(LIST_VERSION)
  for (const [index, [tag, right, id]] of entries.entries()) {
    list.writeUInt16LE(tag!, 4 + 8 * index)
    list.writeUInt16LE(right!, 6 + 8 * index)
    list.writeUInt32LE(id!, 8 + 8 * index)
  }
  return list
}

let loaded: SetList | undefined

/** Loaded once and only for datasets with readers. */
function loadSetList(): SetList {
  loaded ??= makeSetList()
  return loaded
}

function makeSetList(): SetList {
  const findFunction = openCLibrary()
  if ('obstacle' in findFunction) return () => false
  type SetAttribute = (path: string, name: string, value: Buffer, size: number, flags: number) => number
  const setAttribute = findFunction<SetAttribute>(
    'int setxattr(const char *, const char *, void *, size_t, int)',
  )
  return (path, list) => setAttribute(path, LIST, list, list.length, 0) === 0
}
