import { linkSync, readFileSync, renameSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { checkProcess, identifyProcess } from '../../platform/processes.js'
import { randomSuffix } from './rows-paths.js'

/** How often the claim says that it is alive, and how long one that cannot be seen is believed, ms. */
const BEAT_MS = 5000
const BELIEVED_MS = 60_000
/** How often a claim of somebody else is looked at, ms. */
const LOOK_MS = 100

/** Makes others wait; it ends with the process. */
interface RowsClaim {
  release(): void
}

/**
 * Waits until nobody else unpacks into the folder, and says that this process does; undefined when, meanwhile,
 * `isDone`. A claim saves work and nothing else: what two would write at a time is the same, and becomes visible whole.
 */
export async function claimRows(
  folder: string,
  { isDone, onWait }: { readonly isDone: () => boolean; readonly onWait: () => void },
): Promise<RowsClaim | undefined> {
  const path = join(folder, 'claim')
  for (;;) {
    if (take(path)) return hold(path)
    if (!isHeld(path)) remove(path)
    else if (isDone()) return undefined
    else {
      onWait()
      await sleep(LOOK_MS)
    }
  }
}

function take(path: string): boolean {
  const own = `${path}.${randomSuffix()}`
  writeFileSync(own, JSON.stringify(identifyProcess(process.pid) ?? {}), { flag: 'wx' })
  try {
    linkSync(own, path) // whole or not at all, and not where there is one
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw error
  } finally {
    rmSync(own, { force: true })
  }
}

function hold(path: string): RowsClaim {
  const beat = setInterval(() => {
    try {
      utimesSync(path, new Date(), new Date())
    } catch {
      // Somebody has removed it, or the folder: then nobody needs to hear that we live.
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
    const state = checkProcess(holder)
    return state === 'alive' || (state === 'unknown' && Date.now() - statSync(path).mtimeMs < BELIEVED_MS)
  } catch {
    return false // gone, or nothing that one of us wrote
  }
}

/** Removes a claim by its place; of two who do so at a time, one does. */
function remove(path: string): void {
  const aside = `${path}.${randomSuffix()}`
  try {
    renameSync(path, aside)
    rmSync(aside, { force: true })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
  }
}
