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

/** A table that this user, root or `owner` has kept: in a folder of many, others can put there what they like. */
export function readKeptTable(path: string, owner?: number): Buffer | undefined {
  let descriptor: number | undefined
  try {
    descriptor = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
    const { uid } = fstatSync(descriptor)
    return [0, process.getuid?.(), owner].includes(uid) ? readFileSync(descriptor) : undefined
  } catch {
    return undefined // there is none, or none that can be read: it is made again
  } finally {
    if (descriptor !== undefined) closeSync(descriptor)
  }
}

/** Keeps the table for the next time, all or nothing; where it cannot be kept, the next time makes it again. */
export function keepTable(path: string, table: { readonly bytes: Uint8Array }): void {
  const partPath = `${path}.${randomBytes(6).toString('hex')}`
  try {
    makeFolder(dirname(path))
    writeFileSync(partPath, table.bytes, { flag: 'wx' }) // through no link that somebody may have put there
    renameSync(partPath, path)
  } catch {
    if (existsSync(partPath)) rmSync(partPath, { force: true })
  }
}
