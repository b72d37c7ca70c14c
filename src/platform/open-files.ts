import { readdirSync, readFileSync, readlinkSync } from 'node:fs'

/**
 * Processes that have a file below `directory` open or mapped, or are in it. Only root learns anything about other
 * users' processes, so to anybody else an empty answer proves nothing.
 */
export function findProcessesBelow(directory: string): readonly number[] {
  const isBelow = (path: string) => path === directory || path.startsWith(`${directory}/`)
  return listNumbers('/proc').filter((pid) => {
    const links = [`/proc/${pid}/cwd`, ...listNumbers(`/proc/${pid}/fd`).map((fd) => `/proc/${pid}/fd/${fd}`)]
    if (links.some((link) => isBelow(readOr(() => readlinkSync(link))))) return pid !== process.pid
    const maps = readOr(() => readFileSync(`/proc/${pid}/maps`, 'utf8'))
    return maps.includes(`${directory}/`)
  })
}

function listNumbers(directory: string): readonly number[] {
  const names = readOr(() => readdirSync(directory).join('/')).split('/')
  return names.filter((name) => /^\d+$/.test(name)).map(Number)
}

/** Empty if a process has ended, or is another user's. */
function readOr(read: () => string): string {
  try {
    return read()
  } catch {
    return ''
  }
}
