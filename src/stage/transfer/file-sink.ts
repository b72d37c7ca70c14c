import { closeSync, constants, ftruncateSync, mkdirSync, openSync, rmSync, writevSync } from 'node:fs'
import { dirname } from 'node:path'

/** Bytes gathered before they are written: one system call per this many (measured best at 0.25 to 1 MiB). */
const BATCH_BYTES = 512 * 1024

/**
 * Writes a range of a file in order, in large batches, without a promise per chunk. The file is opened at the
 * first byte, so that a refused request leaves nothing behind.
 */
export class FileSink {
  readonly #path: string
  readonly #isWhole: boolean
  #descriptor: number | undefined
  #position: number
  #pending: Uint8Array[] = []
  #pendingBytes = 0

  /** `isWhole`: the range is the file; else the file keeps its other bytes. */
  constructor(path: string, options: { readonly offset: number; readonly isWhole: boolean }) {
    this.#path = path
    this.#position = options.offset
    this.#isWhole = options.isWhole
  }

  write(chunk: Uint8Array): void {
    this.#pending.push(chunk)
    this.#pendingBytes += chunk.length
    if (this.#pendingBytes >= BATCH_BYTES) this.#flush()
  }

  /** Writes what is left and closes the file, which exists from then on even when it is empty. */
  finish(): void {
    this.#flush()
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

  #flush(): void {
    const descriptor = this.#open()
    while (this.#pendingBytes > 0) {
      const written = writevSync(descriptor, this.#pending, this.#position)
      this.#position += written
      this.#pendingBytes -= written
      if (this.#pendingBytes > 0) this.#pending = dropBytes(this.#pending, written)
    }
    this.#pending = []
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

function dropBytes(chunks: readonly Uint8Array[], bytes: number): Uint8Array[] {
  const rest: Uint8Array[] = []
  let left = bytes
  for (const chunk of chunks) {
    if (left >= chunk.length) left -= chunk.length
    else {
      rest.push(left > 0 ? chunk.subarray(left) : chunk)
      left = 0
    }
  }
  return rest
}
