import { randomBytes } from 'node:crypto'
import {
  closeSync,
  constants,
  existsSync,
  fstatSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { dirname } from 'node:path'
import { makeFolder } from '../platform/shared-folder.js'

/** Reads a table kept by this user, root or `owner`: in a shared folder, others can put anything. */
export function readKeptTable(path: string, owner?: number): Buffer | undefined {
  let descriptor: number | undefined
  try {
    descriptor = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
    const { uid } = fstatSync(descriptor)
    return [0, process.getuid?.(), owner].includes(uid) ? readFileSync(descriptor) : undefined
  } catch {
    return undefined // missing or unreadable: it is made again
  } finally {
    if (descriptor !== undefined) closeSync(descriptor)
  }
}

/** Keeps the table for next time, all or nothing; if that fails, it is made again next time. */
export function keepTable(path: string, table: { readonly bytes: Uint8Array }): void {
  const partPath = `${path}.${randomBytes(6).toString('hex')}`
  try {
    makeFolder(dirname(path))
    writeFileSync(partPath, table.bytes, { flag: 'wx' }) // follows no link that somebody may have put there
    renameSync(partPath, path)
  } catch {
    if (existsSync(partPath)) rmSync(partPath, { force: true })
  }
}
