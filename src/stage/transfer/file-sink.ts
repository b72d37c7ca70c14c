import { closeSync, constants, ftruncateSync, mkdirSync, openSync, rmSync, writeSync } from 'node:fs'
import { dirname } from 'node:path'

/**
 * Writes a range of a file in order, each chunk at once and without a promise: a source hands out as much as it could
 * read. The file is opened at the first byte, so that a refused request leaves nothing behind.
 */
export class FileSink {
  readonly #path: string
  readonly #isWhole: boolean
  #descriptor: number | undefined
  #position: number

  /** `isWhole`: the range is the file; else the file keeps its other bytes. */
  constructor(path: string, options: { readonly offset: number; readonly isWhole: boolean }) {
    this.#path = path
    this.#position = options.offset
    this.#isWhole = options.isWhole
  }

  write(chunk: Uint8Array): void {
    const descriptor = this.#open()
    for (let done = 0; done < chunk.length; ) {
      const written = writeSync(descriptor, chunk, done, chunk.length - done, this.#position)
      done += written
      this.#position += written
    }
  }

  /** Closes the file, which exists from then on even when it is empty. */
  finish(): void {
    closeSync(this.#open())
    this.#descriptor = undefined
  }

  /**
   * Closes the file after a failure. Of a range, what was written stays and will be written again; a file in one
   * part is removed, so that on a full disk there is room to write down what is finished.
   */
  discard(): void {
    if (this.#descriptor === undefined) return
    closeSync(this.#descriptor)
    this.#descriptor = undefined
    if (this.#isWhole) rmSync(this.#path, { force: true })
  }

  #open(): number {
    if (this.#descriptor !== undefined) return this.#descriptor
    const { O_WRONLY, O_CREAT, O_TRUNC, O_NOFOLLOW } = constants
    const flags = O_WRONLY | O_CREAT | O_NOFOLLOW | (this.#isWhole ? O_TRUNC : 0)
    // A file in one part is never opened again for writing, so it is born read-only.
    const mode = this.#isWhole ? 0o444 : 0o644
    try {
      this.#descriptor = openSync(this.#path, flags, mode)
    } catch (error) {
      const code = (error as NodeJS.ErrnoException).code
      if (code === 'ENOENT') mkdirSync(dirname(this.#path), { recursive: true })
      else if (code === 'EACCES' && this.#isWhole)
        rmSync(this.#path) // left read-only by an earlier attempt
      else throw error
      this.#descriptor = openSync(this.#path, flags, mode)
    }
    return this.#descriptor
  }
}

/** Gives a file in several parts its size before its parts arrive. */
export function preallocate(path: string, sizeBytes: number): void {
  mkdirSync(dirname(path), { recursive: true })
  const descriptor = openSync(path, constants.O_WRONLY | constants.O_CREAT | constants.O_NOFOLLOW, 0o644)
  try {
    ftruncateSync(descriptor, sizeBytes)
  } finally {
    closeSync(descriptor)
  }
}
