import {
  closeSync,
  fsyncSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  utimesSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { dirname, join } from 'node:path'

/** A file that the executable carries. */
export interface CarriedFile {
  /** Below the program's folder, with '/'. */
  readonly path: string
  readonly sha256: string
  /** Whether it is read whenever dsc starts; these are compared with their digest each time, the others when unpacked. */
  readonly isFirst: boolean
}

/** How often a program that runs says that it is used, ms. */
export const DAY_MS = 86_400_000
/** Long enough for a program that runs, which says daily that it is there, and for an old version that is used at times. */
const UNUSED_MS = 30 * DAY_MS
/** File of a program's folder that says what its files were like when their digests were right. */
const CHECKED = '.checked'
/** As `unpackInto` and `removeOldPrograms` name folders. */
const PROGRAM_FOLDER = /^\.?\d+\.\d+\.\d+.*-[0-9a-f]+/

/** The program in the executable. */
export interface CarriedProgram {
  /** Version and digest of all files: another program has another id. */
  readonly id: string
  readonly files: readonly CarriedFile[]
}

/** Where the program may lie. */
export interface Places {
  /** Where a package may have put it: looked into, never written. */
  readonly installed: readonly string[]
  /** Where it is unpacked: the first that can hold it. */
  readonly writable: readonly string[]
}

/**
 * The folder in which the program lies, which is unpacked into the first of the writable places unless it is there. Any number of processes may do so at once: each unpacks into a folder of its own, and the first rename counts.
 * A folder that belongs to somebody else, or that others may write, is never used.
 */
export function unpackProgram(
  program: CarriedProgram,
  { installed, writable }: Places,
  readFile: (path: string) => Uint8Array,
): string {
  const isThere = (place: string) => {
    const folder = join(place, program.id)
    if (!isOurs(place) || !isOurs(folder)) return false
    if (writable.includes(place)) markUsed(folder, Date.now()) // first: from then on nobody removes it
    return isIntact(program, folder)
  }
  const found = [...installed, ...writable].find(isThere)
  if (found !== undefined) return join(found, program.id)
  const failures: string[] = []
  for (const place of writable) {
    try {
      mkdirSync(place, { recursive: true, mode: 0o700 })
      if (!isOurs(place)) throw new Error('others may write there')
      const folder = unpackInto(program, place, readFile)
      removeOldPrograms(folder, Date.now())
      return folder
    } catch (error) {
      failures.push(`${place}: ${error instanceof Error ? error.message : error}`)
    }
  }
  throw new Error(
    `dsc has no folder to unpack itself into:\n  ${failures.join('\n  ')}\n  try: XDG_CACHE_HOME=<folder of yours>`,
  )
}

/**
 * Says that the program in `folder` is used, at most daily: by the time of its folder, which other machines with the same
 * home see, too. A folder that cannot be written (a home that is read-only by now) stays as it is.
 */
export function markUsed(folder: string, nowMs: number): void {
  try {
    if (nowMs - lstatSync(folder).mtimeMs > DAY_MS) utimesSync(folder, nowMs / 1000, nowMs / 1000)
  } catch (error) {
    if (!isSystemError(error)) throw error
  }
}

/**
 * Removes what other versions unpacked beside `folder` and nobody has used for 30 days, and what was left half unpacked.
 * Each goes out of the way first: who starts it in that moment finds nothing and unpacks it again.
 */
function removeOldPrograms(folder: string, nowMs: number): void {
  const place = dirname(folder)
  const isUnused = (path: string) => isOurs(path) && nowMs - lstatSync(path).mtimeMs > UNUSED_MS
  try {
    for (const name of readdirSync(place)) {
      const path = join(place, name)
      if (path === folder || !PROGRAM_FOLDER.test(name) || !isUnused(path)) continue
      const aside = name.startsWith('.') ? path : join(place, `.${name}-${process.pid}-old`)
      if (aside !== path) renameSync(path, aside)
      if (isUnused(aside)) rmSync(aside, { recursive: true, force: true })
      else renameSync(aside, path) // somebody began to use it
    }
  } catch (error) {
    if (!isSystemError(error)) throw error // another process removes them, too
  }
}

function isSystemError(error: unknown): boolean {
  return error instanceof Error && 'syscall' in error
}

function unpackInto(program: CarriedProgram, place: string, readFile: (path: string) => Uint8Array): string {
  const folder = join(place, program.id)
  const own = join(place, `.${program.id}-${process.pid}-${crypto().randomBytes(6).toString('hex')}`)
  try {
    for (const { path } of program.files) writeThrough(join(own, path), readFile(path))
    for (;;) {
      try {
        renameSync(own, folder)
        return folder
      } catch (error) {
        const code = (error as NodeJS.ErrnoException).code
        if (code !== 'ENOTEMPTY' && code !== 'EEXIST') throw error
        if (isOurs(folder) && isIntact(program, folder)) return folder
        // Damaged: out of the way, in one step, so that nobody finds half of it.
        renameSync(folder, `${own}-damaged`)
        rmSync(`${own}-damaged`, { recursive: true, force: true })
      }
    }
  } finally {
    rmSync(own, { recursive: true, force: true })
  }
}

function writeThrough(path: string, content: Uint8Array): void {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  const file = openSync(path, 'wx', 0o600)
  try {
    for (let at = 0; at < content.length; ) at += writeSync(file, content, at)
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
}

/** Whether a folder is there, belongs to this user or root, and nobody else may write it. */
function isOurs(folder: string): boolean {
  try {
    const found = lstatSync(folder)
    const isOwner = found.uid === process.geteuid?.() || found.uid === 0
    return found.isDirectory() && isOwner && (found.mode & 0o022) === 0
  } catch {
    return false // missing, or not readable
  }
}

/** Whether the files that every start reads are those that the executable carries. */
function isIntact({ files }: CarriedProgram, folder: string): boolean {
  try {
    const first = files.filter(({ isFirst }) => isFirst)
    const seen = JSON.stringify(first.map(({ path }) => describeFile(join(folder, path))))
    if (seen === readChecked(folder)) return true
    for (const { path, sha256 } of first)
      if (crypto().hash('sha256', readFileSync(join(folder, path))) !== sha256) return false
    keepChecked(folder, seen)
    return true
  } catch (error) {
    if (isSystemError(error)) return false // a file is gone
    throw error
  }
}

/** Changes with every change of the file: nobody can set back the time of its last change. */
function describeFile(path: string): string {
  const { ino, size, mtimeNs, ctimeNs } = lstatSync(path, { bigint: true })
  return `${ino} ${size} ${mtimeNs} ${ctimeNs}`
}

/** Files as they were when their digests were right: reading and digesting them at every start takes longer than the rest of it. */
function readChecked(folder: string): string | undefined {
  try {
    return readFileSync(join(folder, CHECKED), 'utf8')
  } catch {
    return undefined
  }
}

function keepChecked(folder: string, seen: string): void {
  const path = join(folder, `${CHECKED}-${process.pid}`)
  try {
    writeFileSync(path, seen, { mode: 0o600 })
    renameSync(path, join(folder, CHECKED))
  } catch (error) {
    if (!isSystemError(error)) throw error // a home that is read-only: they are digested every time
  }
}

/** Loaded when it is needed: that takes as long as the rest of a start. */
function crypto(): typeof import('node:crypto') {
  return process.getBuiltinModule('node:crypto')
}
