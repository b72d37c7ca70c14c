import {
  chmodSync,
  closeSync,
  constants,
  type Dirent,
  existsSync,
  fstatSync,
  fsyncSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  renameSync,
  rmdirSync,
  unlinkSync,
} from 'node:fs'
import { join } from 'node:path'
import { atEndNow } from '../failure/closers.js'
import { DscError, isDscError } from '../failure/dsc-error.js'
import { describeRefusal, isRefused } from './disk-failure.js'

/** Linux' O_PATH, which Node lacks: holds an entry without reading it, so that its mode does not matter. */
export const O_PATH = 0o10000000
/** Flags that hold a folder. */
export const HOLD = O_PATH | constants.O_DIRECTORY
/** False in a bare chroot. Then dsc reaches a folder by name, and only where no other user could replace it. */
export const HAS_DESCRIPTOR_PATHS = existsSync('/proc/self/fd')
/** Entries to remove between two checks for signals and timers. */
const BATCH_ENTRIES = 256
/** How often to empty a folder again after others added something to it. */
const MAX_RETRIES = 3

/**
 * A folder held by its descriptor. Operations through it stay in this very folder, even if others rename it or replace
 * it by a link. Names are single names; symlinks are never followed. Throws CACHE_ROOT_INVALID for an entry that should
 * be a folder but is not, and leaves it untouched; also for a folder that others can write to if `/proc` is not
 * mounted. Linux only, for `/proc/self/fd`.
 */
export class HeldFolder {
  /** Its name when it was opened, for people. */
  readonly name: string
  readonly #descriptor: number

  private constructor(name: string, descriptor: number) {
    this.name = name
    this.#descriptor = descriptor
    if (!HAS_DESCRIPTOR_PATHS) requirePrivate(name, descriptor)
  }

  /** Opens a folder by its path, following links on the way; undefined if it does not exist. */
  static find(path: string): HeldFolder | undefined {
    const descriptor = openIfThere(path, path, HOLD)
    return descriptor === undefined ? undefined : new HeldFolder(path, descriptor)
  }

  /** A path to this folder while it is held, for this process and its threads only. */
  get path(): string {
    return HAS_DESCRIPTOR_PATHS ? `/proc/self/fd/${this.#descriptor}` : this.name
  }

  /** A path to this entry. The caller must not follow a symlink at its end. */
  pathOf(name: string): string {
    if (!isSingleName(name)) throw foreignEntry(join(this.name, name), 'a single name')
    return `${this.path}/${name}`
  }

  /** Opens the folder of this name; undefined if nothing has the name. */
  findFolder(name: string): HeldFolder | undefined {
    const path = this.pathOf(name)
    const shown = join(this.name, name)
    const descriptor = openIfThere(path, shown, HOLD | constants.O_NOFOLLOW)
    return descriptor === undefined ? undefined : new HeldFolder(shown, descriptor)
  }

  /** Opens the folder of this name, creating it if it is missing. */
  makeFolder(name: string): HeldFolder {
    try {
      mkdirSync(this.pathOf(name))
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw describeRefusal(error, this.name)
    }
    const made = this.findFolder(name)
    if (made === undefined) throw foreignEntry(join(this.name, name), 'a folder that stays')
    return made
  }

  /** Lists the entries. */
  list(): readonly Dirent[] {
    return readdirSync(this.path, { withFileTypes: true })
  }

  has(name: string): boolean {
    return lstatSync(this.pathOf(name), { throwIfNoEntry: false }) !== undefined
  }

  /** Throws CACHE_ROOT_INVALID for a symlink: dsc never creates one there. */
  refuseLink(name: string): void {
    const isLink = lstatSync(this.pathOf(name), { throwIfNoEntry: false })?.isSymbolicLink()
    if (isLink) throw foreignEntry(join(this.name, name), 'a file or folder')
  }

  /** Moves an entry. False: it does not exist. */
  move(name: string, into: HeldFolder, newName: string): boolean {
    try {
      renameSync(this.pathOf(name), into.pathOf(newName))
      return true
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false
      throw describeRefusal(error, join(this.name, name))
    }
  }

  /** Removes an entry that is not a folder. */
  unlink(name: string): void {
    unlinkSync(this.pathOf(name))
  }

  /** Removes an entry and everything below it, even read-only folders. A missing entry is no error. */
  async remove(name: string): Promise<void> {
    try {
      await this.#remove(name, { entries: 0, retries: MAX_RETRIES })
    } catch (error) {
      throw describeRefusal(error, join(this.name, name))
    }
  }

  /** Syncs the folder's list of names to disk. */
  sync(): void {
    const descriptor = openSync(`${this.path}/.`, constants.O_RDONLY | constants.O_DIRECTORY)
    using _ = atEndNow(() => closeSync(descriptor))
    fsyncSync(descriptor)
  }

  [Symbol.dispose](): void {
    this.close()
  }

  close(): void {
    closeSync(this.#descriptor)
  }

  async #remove(name: string, done: { entries: number; retries: number }): Promise<void> {
    done.entries += 1
    if (done.entries % BATCH_ENTRIES === 0) await new Promise(setImmediate)
    if (this.#unlink(name)) return
    const folder = this.findFolder(name)
    if (folder === undefined) return
    try {
      for (const entry of folder.#listToRemove()) await folder.#remove(entry.name, done)
    } finally {
      folder.close()
    }
    try {
      rmdirSync(this.pathOf(name))
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException
      if (code === 'ENOTEMPTY' && done.retries > 0) {
        done.retries -= 1
        return this.#remove(name, done)
      }
      if (code !== 'ENOENT') throw error
    }
  }

  /** False: it is a folder. */
  #unlink(name: string): boolean {
    try {
      unlinkSync(this.pathOf(name))
      return true
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException
      if (code === 'ENOENT') return true
      const stats = lstatSync(this.pathOf(name), { throwIfNoEntry: false })
      if (stats === undefined) return true // another process was faster
      if (stats.isDirectory()) return false
      throw error
    }
  }

  /** Entries of a folder to remove, even if its owner has no access to it. */
  #listToRemove(): readonly Dirent[] {
    const { mode } = lstatSync(`${this.path}/.`)
    if ((mode & 0o700) !== 0o700) {
      try {
        chmodSync(this.path, 0o700)
      } catch (error) {
        if (!isRefused(error)) throw error // another user's: removing its entries may still be allowed
      }
    }
    return this.list()
  }
}

/** Replaces the held path in an error message by the folder's name. */
export function nameHeldFolder(error: unknown, folder: HeldFolder): unknown {
  if (!isDscError(error) || !error.message.includes(folder.path)) return error
  const { hint } = error
  return new DscError(error.code, error.message.replaceAll(folder.path, folder.name), { hint, cause: error })
}

function openIfThere(path: string, shown: string, flags: number): number | undefined {
  try {
    return openSync(path, flags)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT') return undefined
    if (code === 'ENOTDIR' || code === 'ELOOP') throw foreignEntry(shown, 'a folder')
    throw describeRefusal(error, shown)
  }
}

function requirePrivate(name: string, descriptor: number): void {
  if ((fstatSync(descriptor).mode & 0o022) === 0) return
  closeSync(descriptor)
  throw new DscError('CACHE_ROOT_INVALID', `${name}: others may write to it, and /proc is not mounted here`, {
    hint: 'mount -t proc proc /proc, or chmod go-w it',
  })
}

/** Whether it names an entry of a folder, and nothing above or below. */
export function isSingleName(name: string): boolean {
  return name !== '' && name !== '.' && name !== '..' && !/[/\0]/.test(name)
}

/** The failure of an entry that is not what dsc puts there. */
export function foreignEntry(path: string, expected: string): DscError {
  const isNamed = isSingleName(path.slice(path.lastIndexOf('/') + 1))
  const stats = isNamed ? lstatSync(path, { throwIfNoEntry: false }) : undefined
  const found = stats?.isSymbolicLink() ? 'a symbolic link' : 'something else'
  return new DscError(
    'CACHE_ROOT_INVALID',
    `${path}: expected ${expected}, found ${found}; it is left as it is`,
    { hint: `find out who put it there (ls -ld ${path}); dsc cleanup goes on once it is away` },
  )
}
