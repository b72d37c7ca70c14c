import { closeSync, constants, openSync, writeSync } from 'node:fs'
import { atEndNow } from '../../../failure/closers.js'
import { PAGE_BYTES } from '../../../platform/page-bytes.js'
import { giveBack, isAt, takeBlock, WRITE_BYTES } from './write-blocks.js'

/** Longest time that bytes are gathered, in ms: a killed process loses them. */
export const GATHER_MS = 1000

/**
 * Writes a range of a file past the kernel's page cache, whose pages take most of the processor time of a large file.
 * Where the file system refuses that, it writes as usual. A source that reads into `room` saves a copy of the bytes.
 */
export class DirectWriter {
  #descriptor: number
  /** Holds byte n of the file at n modulo its size, so that pages of the file are pages of memory. */
  readonly #block: Buffer
  /** Where the next byte of the range belongs in the file, in bytes. */
  #position: number
  /** Where the first byte belongs that is not in the file yet. */
  #writtenTo: number
  /** Where the first byte belongs that `beforeWrite` has not got yet. */
  #shownTo: number
  #waitingSinceMs = 0
  readonly #beforeWrite: (bytes: Uint8Array) => void

  private constructor(
    descriptor: number,
    offset: number,
    block: Buffer,
    beforeWrite: (bytes: Uint8Array) => void,
  ) {
    this.#descriptor = descriptor
    this.#position = offset
    this.#writtenTo = offset
    this.#shownTo = offset
    this.#block = block
    this.#beforeWrite = beforeWrite
  }

  /**
   * Writes from `offset` on to the file that is open as `descriptor`, which it closes, and calls `beforeWrite` with all
   * bytes in order, each before it is written. Undefined: the file system does not open files so, or all memory is in
   * use; the descriptor stays open.
   */
  static find(
    descriptor: number,
    offset: number,
    beforeWrite: (bytes: Uint8Array) => void,
  ): DirectWriter | undefined {
    const block = takeBlock()
    if (block === undefined) return undefined
    try {
      const direct = reopen(descriptor, constants.O_DIRECT)
      closeSync(descriptor)
      return new DirectWriter(direct, offset, block, beforeWrite)
    } catch (error) {
      giveBack(block)
      if ((error as NodeJS.ErrnoException).code === 'EINVAL') return undefined
      throw error
    }
  }

  /** Memory for the next bytes, until the next call of another method. */
  get room(): Buffer {
    return this.#block.subarray(this.#position % WRITE_BYTES)
  }

  write(chunk: Uint8Array): void {
    for (let done = 0; done < chunk.length; ) {
      const begin = this.#position % WRITE_BYTES
      const bytes = chunk.subarray(done, done + WRITE_BYTES - begin)
      if (!isAt(this.#block, begin, bytes)) this.#block.set(bytes, begin)
      if (this.#writtenTo === this.#position) this.#waitingSinceMs = performance.now()
      this.#position += bytes.length
      done += bytes.length
      if (begin + bytes.length === WRITE_BYTES) this.#writeTo(this.#position)
    }
    if (performance.now() - this.#waitingSinceMs <= GATHER_MS) return
    this.#writeTo(this.#position - (this.#position % PAGE_BYTES))
    this.#waitingSinceMs = performance.now()
  }

  /** Writes the rest. */
  flush(): void {
    this.#writeTo(this.#position)
  }

  close(): void {
    giveBack(this.#block)
    closeSync(this.#descriptor)
  }

  /** Writes bytes of the block. Those of pages that are not whole go through the page cache. */
  #writeTo(end: number): void {
    if (this.#shownTo < end) {
      const begin = this.#shownTo % WRITE_BYTES
      this.#beforeWrite(this.#block.subarray(begin, begin + end - this.#shownTo))
      this.#shownTo = end
    }
    while (this.#writtenTo < end) {
      const beyond = this.#writtenTo % PAGE_BYTES
      const pagesEnd = end - (end % PAGE_BYTES)
      if (beyond === 0 && pagesEnd > this.#writtenTo) this.#writePages(pagesEnd)
      else this.#writeAround(Math.min(end, this.#writtenTo - beyond + PAGE_BYTES))
    }
  }

  #writePages(end: number): void {
    try {
      this.#writeFrom(this.#descriptor, end)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EINVAL') throw error
      const direct = this.#descriptor
      using _ = atEndNow(() => closeSync(direct))
      this.#descriptor = reopen(direct)
    }
  }

  #writeAround(end: number): void {
    const descriptor = reopen(this.#descriptor)
    using _ = atEndNow(() => closeSync(descriptor))
    this.#writeFrom(descriptor, end)
  }

  /** May write less. */
  #writeFrom(descriptor: number, end: number): void {
    const at = this.#writtenTo
    this.#writtenTo += writeSync(descriptor, this.#block, at % WRITE_BYTES, end - at, at)
  }
}

/** Opens the same file once more. */
function reopen(descriptor: number, flags = 0): number {
  return openSync(`/proc/self/fd/${descriptor}`, constants.O_WRONLY | flags)
}
