import { closeSync, constants, fstatSync, openSync, readlinkSync, realpathSync } from 'node:fs'

/** What of the files that a program can read it may send to others, looked at once a file is open. */
export interface SendRule {
  /** Any file in one of these folders; absolute, without links. */
  readonly below: readonly string[]
  /** Of this folder, what everybody may read. */
  readonly publicBelow?: string | undefined
}

/** Mode bit of a file that everybody may read. */
const OTHERS_READ = 0o004

/** Opens a file for reading, at once also where somebody put a pipe. Undefined, closed again: the rule forbids to send it. */
export function openToSend(path: string | Buffer, rule: SendRule): number | undefined {
  const descriptor = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
  if (maySend(descriptor, path, rule)) return descriptor
  closeSync(descriptor)
  return undefined
}

/** Whether an open file may be sent, wherever links and names led to it. */
export function maySend(descriptor: number, path: string | Buffer, rule: SendRule): boolean {
  const stats = fstatSync(descriptor)
  if (!stats.isFile()) return false
  const opened = findOpened(descriptor, path)
  if (rule.below.some((folder) => opened.startsWith(`${folder}/`))) return true
  const { publicBelow } = rule
  return publicBelow !== undefined && opened.startsWith(`${publicBelow}/`) && (stats.mode & OTHERS_READ) !== 0
}

/** The path of what was opened, links resolved. Without /proc, of what would be opened now. */
export function findOpened(descriptor: number, path: string | Buffer): string {
  try {
    return readlinkSync(`/proc/self/fd/${descriptor}`)
  } catch {
    return realpathSync(path)
  }
}
