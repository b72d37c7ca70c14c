import { closeSync, constants, ftruncateSync, lstatSync, openSync, rmSync, writeSync } from 'node:fs'
import { changeFileMode, onHeldPath } from '../../../platform/held-folder.js'
import type { KeptFolders } from './kept-folders.js'

/**
 * Chunks below this are gathered, bytes: TLS hands out 16 KiB at a time, and writing those one by one takes twice the
 * processor time (0.5 instead of 0.25 ms per MiB).
 */
const SMALL_BYTES = 64 * 1024
const GATHER_BYTES = 256 * 1024
const spareBuffers: Buffer[] = []

/**
 * Writes a range of a file in order, large chunks at once and small ones gathered, without a promise for any. The
 * file is opened at the first byte, so that a refused request leaves nothing behind.
 */
export class FileSink {
  readonly #path: string
  readonly #isWhole: boolean
  readonly #folders: KeptFolders
  #descriptor: number | undefined
  #position: number
  /** Small chunks that came after the first, which is often all there is. */
  #gathered: Buffer | undefined
  #gatheredBytes = 0
  #hasChunk = false

  /** `isWhole`: the range is the file; else the file keeps its other bytes. */
  constructor(
    path: string,
    options: { readonly offset: number; readonly isWhole: boolean; readonly folders: KeptFolders },
  ) {
    this.#path = path
    this.#position = options.offset
    this.#isWhole = options.isWhole
    this.#folders = options.folders
  }

  write(chunk: Uint8Array): void {
    const isFirst = !this.#hasChunk
    this.#hasChunk = true
    if (isFirst || chunk.length >= SMALL_BYTES) {
      this.#flush()
      this.#writeAll(chunk)
      return
    }
    if (this.#gatheredBytes + chunk.length > GATHER_BYTES) this.#flush()
    this.#gathered ??= spareBuffers.pop() ?? Buffer.allocUnsafeSlow(GATHER_BYTES)
    this.#gathered.set(chunk, this.#gatheredBytes)
    this.#gatheredBytes += chunk.length
  }

  /** Writes what is left and closes the file, which exists from then on even when it is empty. */
  finish(): void {
    this.#flush()
    this.#release()
    closeSync(this.#open())
    this.#descriptor = undefined
  }

  /**
   * Closes the file after a failure. Of a range, what was written stays and will be written again; a file in one
   * part is removed, so that on a full disk there is room to write down what is finished.
   */
  discard(): void {
    this.#release()
    if (this.#descriptor === undefined) return
    closeSync(this.#descriptor)
    this.#descriptor = undefined
    if (this.#isWhole) onHeldPath(this.#path, (path) => rmSync(path, { force: true }))
  }

  #flush(): void {
    if (this.#gatheredBytes === 0) return
    this.#writeAll(this.#gathered!.subarray(0, this.#gatheredBytes))
    this.#gatheredBytes = 0
  }

  #release(): void {
    if (this.#gathered) spareBuffers.push(this.#gathered)
    this.#gathered = undefined
    this.#gatheredBytes = 0
  }

  #writeAll(bytes: Uint8Array): void {
    const descriptor = this.#open()
    for (let done = 0; done < bytes.length; ) {
      const written = writeSync(descriptor, bytes, done, bytes.length - done, this.#position)
      done += written
      this.#position += written
    }
  }

  #open(): number {
    if (this.#descriptor !== undefined) return this.#descriptor
    const { O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW } = constants
    const flags = O_WRONLY | O_CREAT | O_NOFOLLOW | (this.#isWhole ? O_EXCL : 0)
    // A file in one part is never opened again for writing, so it is born read-only.
    const mode = this.#isWhole ? 0o444 : 0o644
    const open = (path: string): number => {
      try {
        return openSync(path, flags, mode)
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
        rmSync(path) // left by an earlier attempt; it may be a link that another copy shares
        return openSync(path, flags, mode)
      }
    }
    this.#descriptor = this.#folders.on(this.#path, open)
    return this.#descriptor
  }
}

/**
 * Gives a file in several parts its size before its parts arrive, and keeps what earlier attempts wrote. An attempt
 * that was killed may have left a link to a file of another copy or a file of another user, which are let go, or a
 * file that was complete and is read-only already.
 */
export function preallocate(path: string, sizeBytes: number): void {
  const descriptor = onHeldPath(path, openToWrite, { makesFolders: true })
  try {
    ftruncateSync(descriptor, sizeBytes)
  } finally {
    closeSync(descriptor)
  }
}

/** What another user staged can be replaced in a shared folder, but not written into. */
function openToWrite(path: string): number {
  const left = lstatSync(path, { throwIfNoEntry: false })
  if (left && !makeWritable(path)) rmSync(path)
  return openSync(path, constants.O_WRONLY | constants.O_CREAT | constants.O_NOFOLLOW, 0o644)
}

/** False: it is another user's, or no file of its own. */
function makeWritable(path: string): boolean {
  try {
    return changeFileMode(path, 0o644)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EPERM') throw error
    return false
  }
}
