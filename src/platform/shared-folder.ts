import { closeSync, constants, existsSync, fchmodSync, mkdirSync, openSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { isMainThread } from 'node:worker_threads'

const GROUP_AND_OTHERS = 0o077
const WRITE_OF_GROUP_AND_OTHERS = 0o022
const STICKY = 0o1000

let umaskAtStart: number | undefined

/**
 * Makes new files of this process as accessible to group and others as `folder` is: in a folder that a group shares
 * (mode 2775), one member can then finish, evict and repair copies that another member staged, regardless of umask. In
 * a folder with the sticky bit, such as /tmp, files stay with their owners. Other threads have the umask of the main
 * one, and cannot set it.
 */
export function shareLikeFolder(folder: string): void {
  if (!isMainThread) return
  umaskAtStart ??= process.umask()
  process.umask(umaskAtStart & ~grantedBy(folder))
}

/** Undoes `shareLikeFolder`, for programs that this process starts. */
export function restoreUmask(): void {
  if (umaskAtStart !== undefined) process.umask(umaskAtStart)
}

/** Creates an empty file, unless it exists, that everybody with write permission for its folder can write. */
export function createSharedFile(path: string): void {
  if (existsSync(path)) return
  const mode = 0o644 | (grantedBy(dirname(path)) & WRITE_OF_GROUP_AND_OTHERS)
  let descriptor: number
  try {
    descriptor = openSync(path, constants.O_RDWR | constants.O_CREAT | constants.O_EXCL, mode)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return
    throw error
  }
  try {
    fchmodSync(descriptor, mode) // even if the umask removed bits
  } finally {
    closeSync(descriptor)
  }
}

/**
 * Makes a folder and its missing parents. Node's own recursive mkdir retries forever if a parent exists and still
 * answers ENOENT (/proc, automounter maps, a held folder that was removed), and reports ENOENT for a read-only file
 * system.
 */
export function makeFolder(path: string | Buffer): void {
  try {
    mkdirSync(path)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    const parent =
      typeof path === 'string' ? dirname(path) : Buffer.from(dirname(path.toString('latin1')), 'latin1')
    if (code === 'ENOENT' && !isFolder(parent)) {
      makeFolder(parent)
      makeFolder(path)
    } else if (!isFolder(path)) throw error
  }
}

function grantedBy(folder: string): number {
  const { mode } = statSync(folder)
  return mode & (mode & STICKY ? GROUP_AND_OTHERS & ~WRITE_OF_GROUP_AND_OTHERS : GROUP_AND_OTHERS)
}

function isFolder(path: string | Buffer): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false
}
