import { linkSync, readFileSync, renameSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { unlessCode } from '../failure/unless-code.js'
import { LOOK_MS, pause } from './poll.js'
import { checkProcess, identifyProcess } from './processes.js'
import { createUniqueId } from './unique-id.js'

/**
 * How often a claim shows that it is alive, and how long one whose process cannot be checked counts as alive, in ms.
 */
const BEAT_MS = 5000
const BELIEVED_MS = 60_000

/** Makes other processes wait; it ends with the process. */
interface FolderClaim {
  release(): void
}

/**
 * Waits until no other process unpacks into the folder, then claims it; undefined if `isDone` in the meantime. A claim
 * only saves work: concurrent writers write the same data, which becomes visible whole.
 */
export async function claimFolder(
  folder: string,
  { isDone, onWait }: { readonly isDone: () => boolean; readonly onWait: () => void },
): Promise<FolderClaim | undefined> {
  const path = join(folder, 'claim')
  for (;;) {
    if (take(path)) return hold(path)
    if (!isHeld(path)) remove(path)
    else if (isDone()) return undefined
    else {
      onWait()
      await pause(LOOK_MS.release)
    }
  }
}

function take(path: string): boolean {
  const own = `${path}.${createUniqueId()}`
  writeFileSync(own, JSON.stringify(identifyProcess(process.pid) ?? {}), { flag: 'wx' })
  try {
    linkSync(own, path) // all or nothing, and only if there is no claim
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw error
  } finally {
    rmSync(own, { force: true })
  }
}

function hold(path: string): FolderClaim {
  const beat = setInterval(() => {
    try {
      utimesSync(path, new Date(), new Date())
    } catch {
      // The claim or the folder was removed, so no process needs to know that this one is alive.
    }
  }, BEAT_MS)
  beat.unref()
  return {
    release() {
      clearInterval(beat)
      rmSync(path, { force: true })
    },
  }
}

function isHeld(path: string): boolean {
  try {
    const holder = JSON.parse(readFileSync(path, 'utf8')) as Parameters<typeof checkProcess>[0]
    const silentMs = Date.now() - statSync(path).mtimeMs
    const state = checkProcess(holder, silentMs)
    return state === 'alive' || (state === 'unknown' && silentMs < BELIEVED_MS)
  } catch {
    return false // gone, or not written by dsc
  }
}

/** Removes a claim by path; of two concurrent removals, one succeeds. */
function remove(path: string): void {
  const aside = `${path}.${createUniqueId()}`
  unlessCode(['ENOENT'], () => renameSync(path, aside))
  rmSync(aside, { force: true })
}
