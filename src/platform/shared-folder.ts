import { mkdirSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { isMainThread } from 'node:worker_threads'

const READ_OF_GROUP_AND_OTHERS = 0o055
const WRITE_OF_GROUP_AND_OTHERS = 0o022

let umaskAtStart: number | undefined

/**
 * Makes new files of this process as readable to group and others as `folder` is, despite the umask, and writable for
 * its user alone: a cache has one owner. Other threads have the umask of the main one, and cannot set it.
 */
export function readableLikeFolder(folder: string): void {
  if (!isMainThread) return
  umaskAtStart ??= process.umask()
  const readers = (statSync(folder, { throwIfNoEntry: false })?.mode ?? 0) & READ_OF_GROUP_AND_OTHERS
  process.umask((umaskAtStart & ~readers) | WRITE_OF_GROUP_AND_OTHERS)
}

/** Undoes `readableLikeFolder`, for programs that this process starts. */
export function restoreUmask(): void {
  if (umaskAtStart !== undefined) process.umask(umaskAtStart)
  umaskAtStart = undefined
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

function isFolder(path: string | Buffer): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false
}
