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
import { tryJson } from '../model/try-json.js'
import { makeFolder } from '../platform/shared-folder.js'
import type { LeftOut } from './plan/sample-files.js'

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

/** The notes made with the table at `path`: each use of the table prints them again. */
export function readKeptNotes(path: string): readonly LeftOut[] {
  const kept = tryJson(readKeptTable(notesPathOf(path))?.toString() ?? '')
  return Array.isArray(kept) && kept.every(isNote) ? kept : [] // damaged: samples do not depend on it
}

/** Keeps the table for next time, all or nothing; if that fails, it is made again next time. */
export function keepTable(
  path: string,
  { bytes }: { readonly bytes: Uint8Array },
  notes: readonly LeftOut[] = [],
): void {
  if (notes.length > 0) keepFile(notesPathOf(path), Buffer.from(JSON.stringify(notes)))
  keepFile(path, bytes)
}

const isNote = (kept: unknown): kept is LeftOut => {
  const { path, reason } = (kept ?? {}) as Readonly<Record<string, unknown>>
  return typeof path === 'string' && typeof reason === 'string'
}

const notesPathOf = (path: string) => `${path}.notes`

function keepFile(path: string, bytes: Uint8Array): void {
  const partPath = `${path}.${randomBytes(6).toString('hex')}`
  try {
    makeFolder(dirname(path))
    writeFileSync(partPath, bytes, { flag: 'wx' }) // follows no link that somebody may have put there
    renameSync(partPath, path)
  } catch {
    if (existsSync(partPath)) rmSync(partPath, { force: true })
  }
}
