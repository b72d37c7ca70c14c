import { closeSync, constants, fstatSync, openSync, readlinkSync, realpathSync } from 'node:fs'

/** Which of the files that a program can read it may send to others; checked once a file is open. */
export interface SendRule {
  /** Any file in one of these folders; absolute, without links. */
  readonly below: readonly string[]
  /** In this folder, only files that everybody can read. */
  readonly publicBelow?: string | undefined
}

/** Mode bit of a file that everybody can read. */
const OTHERS_READ = 0o004

/**
 * Opens a file for reading without waiting, even if it is a pipe. Undefined, with the file closed again: the rule
 * forbids sending it.
 */
export function openToSend(path: string | Buffer, rule: SendRule): number | undefined {
  const descriptor = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
  if (maySend(descriptor, path, rule)) return descriptor
  closeSync(descriptor)
  return undefined
}

/** Whether an open file may be sent, whichever links and names led to it. */
export function maySend(descriptor: number, path: string | Buffer, rule: SendRule): boolean {
  const stats = fstatSync(descriptor)
  if (!stats.isFile()) return false
  const opened = findOpened(descriptor, path)
  if (rule.below.some((folder) => opened.startsWith(`${folder}/`))) return true
  const { publicBelow } = rule
  return publicBelow !== undefined && opened.startsWith(`${publicBelow}/`) && (stats.mode & OTHERS_READ) !== 0
}

/** The path of the open file, links resolved. Without /proc, of the file that the name would open now. */
export function findOpened(descriptor: number, path: string | Buffer): string {
  try {
    return readlinkSync(`/proc/self/fd/${descriptor}`)
  } catch {
    return realpathSync(path)
  }
}
