import { existsSync, readdirSync, statSync, utimesSync } from 'node:fs'
import { manifestPath } from '../manifest/manifest-path.js'
import { isRefused } from '../platform/disk-failure.js'
import { filesDirectory, hubDirectory } from './cache-layout.js'

/** Maximum number of folders to check, parents first: one stat each, in the path of every job. */
const MAX_FOLDERS = 64
/** Times are set in µs and kept in ns, or rounded up by the file system. */
const ROUNDING_MS = 0.01

/**
 * Gives the folders of a copy with a finished manifest the manifest's time. Adding or removing an entry changes its
 * folder's time, so a stat tells whether anybody did. Does nothing if this user may not.
 */
export function markUntouched(copyDirectory: string): void {
  const { mtimeMs } = statSync(manifestPath(copyDirectory))
  try {
    for (const top of [filesDirectory(copyDirectory), hubDirectory(copyDirectory)])
      for (const folder of firstFolders(top)) {
        const stats = statSync(folder, { throwIfNoEntry: false })
        if (stats) utimesSync(folder, stats.atimeMs / 1000, mtimeMs / 1000)
      }
  } catch (error) {
    if (!isRefused(error)) throw error
  }
}

/** Whether nothing was removed from or added to the copy's files or its view, as far as a few stats tell. */
export function isUntouched(copyDirectory: string): boolean {
  return (
    existsSync(filesDirectory(copyDirectory)) &&
    isUnchanged(copyDirectory, filesDirectory(copyDirectory)) &&
    isUnchanged(copyDirectory, hubDirectory(copyDirectory))
  )
}

/** The same for one folder of the copy; a missing folder counts as unchanged. */
export function isUnchanged(copyDirectory: string, top: string): boolean {
  const manifest = statSync(manifestPath(copyDirectory), { throwIfNoEntry: false })
  if (manifest === undefined) return false
  for (const folder of firstFolders(top)) {
    const found = statSync(folder, { throwIfNoEntry: false })
    if (found === undefined) return folder === top
    if (Math.abs(found.mtimeMs - manifest.mtimeMs) > ROUNDING_MS) return false
  }
  return true
}

/** A folder and folders in it, at most MAX_FOLDERS. Most datasets have few, as the number of links tells. */
function* firstFolders(top: string): Generator<string> {
  const left = [top]
  for (let found = 0; found < MAX_FOLDERS; found += 1) {
    const folder = left.shift()
    if (folder === undefined) return
    const links = left.length < MAX_FOLDERS ? statSync(folder, { throwIfNoEntry: false })?.nlink : undefined
    yield folder
    // 2: its own name and `.`; 1: the file system does not count.
    if (links === undefined || links === 2) continue
    for (const entry of readdirSync(folder, { withFileTypes: true }))
      if (entry.isDirectory()) left.push(`${folder}/${entry.name}`)
  }
}
