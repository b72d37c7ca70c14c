import assert from 'node:assert/strict'
import {
  closeSync,
  constants,
  fstatSync,
  ftruncateSync,
  lstatSync,
  openSync,
  readSync,
  rmSync,
  writeSync,
} from 'node:fs'
import { atEndNow } from '../../../failure/closers.js'
import { BLOCK_BYTES } from '../../../platform/block-bytes.js'
import { changeFileMode, onHeldPath } from '../../../platform/held-path.js'
import { PAGE_BYTES } from '../../../platform/page-bytes.js'
import { DirectWriter, GATHER_MS } from './direct-writer.js'
import { type FileTurns, inTurn } from './file-turns.js'
import type { KeptFolders } from './kept-folders.js'
import { giveBack, isAt, takeBlock } from './write-blocks.js'

/**
 * Chunks smaller than this are gathered, in bytes: TLS delivers 16 KiB at a time, and writing those one by one takes
 * twice the processor time (0.5 instead of 0.25 ms per MiB).
 */
const SMALL_BYTES = 64 * 1024
const GATHER_BYTES = 256 * 1024
const READ_BYTES = 1024 * 1024
/** Less than this is fetched again if it came within `QUICK_MS`, bytes: it costs less than to ask how to go on. */
const QUICK_BYTES = 512 * 1024
const QUICK_MS = 1000

/**
 * Writes a range of a file in order: large chunks at once, small ones gathered, without a promise for any. It opens the
 * file when it first writes, so that a refused request leaves nothing behind.
 */
export class FileSink {
  readonly #path: string
  readonly #isWhole: boolean
  readonly #end: number
  readonly #folders: KeptFolders
  readonly #turns: FileTurns | undefined
  readonly #beforeWrite: (bytes: Uint8Array) => void
  #mayBeDirect: boolean
  #direct: DirectWriter | undefined
  #descriptor: number | undefined
  #position: number
  #gathered: Buffer | undefined
  #gatheredBytes = 0
  #gatheredSinceMs = 0

  /** `isWhole`: the range is the whole file; otherwise the file keeps its other bytes. */
  constructor(
    path: string,
    options: {
      readonly offset: number
      /** Bytes of the range. */
      readonly length: number
      readonly isWhole: boolean
      readonly folders: KeptFolders
      readonly turns?: FileTurns | undefined
      /** A range is written past the page cache, if the file system can. */
      readonly isDirect?: boolean | undefined
      /** Called with all bytes in order, in large pieces, each before it is written. */
      readonly beforeWrite: (bytes: Uint8Array) => void
    },
  ) {
    this.#path = path
    this.#position = options.offset
    this.#end = options.offset + options.length
    this.#isWhole = options.isWhole
    this.#folders = options.folders
    this.#beforeWrite = options.beforeWrite
    this.#turns = options.isWhole ? undefined : options.turns
    this.#mayBeDirect = options.isDirect === true && !options.isWhole
  }

  /**
   * Goes on after the first `bytes` of a whole file that an earlier attempt left. They are copied to a new file: a stager
   * that was replaced may wake up and write behind them to the one it has open.
   */
  goOn(bytes: number): void {
    const left = this.#folders.on(this.#path, openLeft)
    using _ = atEndNow(() => closeSync(left))
    const buffer = Buffer.allocUnsafe(Math.min(READ_BYTES, bytes))
    while (this.#position < bytes) {
      const length = Math.min(buffer.length, bytes - this.#position)
      const chunk = buffer.subarray(0, readSync(left, buffer, 0, length, this.#position))
      assert.ok(chunk.length > 0, 'the file has these bytes')
      this.#writeAll(chunk)
    }
  }

  /** Memory into which the next bytes are best read; undefined: any. Valid until the next call of another method. */
  get room(): Buffer | undefined {
    if (this.#direct) return this.#direct.room
    return this.#gatheredBytes > 0
      ? this.#gathered!.subarray(this.#gatheredBytes, this.#gatherEnd)
      : undefined
  }

  write(chunk: Uint8Array): void {
    if (this.#mayBeDirect) this.#findDirect()
    if (this.#direct) {
      this.#direct.write(chunk)
      return
    }
    const isOnly = this.#gatheredBytes === 0 && this.#position + chunk.length >= this.#end
    this.#gathered ??= chunk.length < SMALL_BYTES && !isOnly ? takeBlock() : undefined
    const isThere = this.#gathered && isAt(this.#gathered, this.#gatheredBytes, chunk)
    if (this.#gathered && (isThere || chunk.length < SMALL_BYTES)) this.#gather(this.#gathered, chunk)
    else {
      this.flush()
      this.#writeAll(chunk)
    }
  }

  /** Writes what is gathered. */
  flush(): void {
    this.#direct?.flush()
    if (this.#gatheredBytes === 0) return
    this.#writeAll(this.#gathered!.subarray(0, this.#gatheredBytes))
    this.#gatheredBytes = 0
  }

  /** Writes the rest and closes the file, which exists from then on even if it is empty. */
  finish(): void {
    this.flush()
    if (this.#direct === undefined) this.#open()
    this.#close()
  }

  /** Writes what is gathered and closes the file, where a later attempt may go on. */
  leave(): void {
    try {
      this.flush()
    } catch (error) {
      this.discard()
      throw error
    }
    this.#close()
  }

  /**
   * Closes the file after a failure. The written bytes of a range stay and will be overwritten. A file in one part is
   * removed, so that a full disk has room to record finished files.
   */
  discard(): void {
    const isOpen = this.#descriptor !== undefined
    this.#close()
    if (isOpen && this.#isWhole) onHeldPath(this.#path, (path) => rmSync(path, { force: true }))
  }

  /** Where the gathered bytes end at a boundary of blocks. */
  get #gatherEnd(): number {
    return GATHER_BYTES - (this.#position % BLOCK_BYTES)
  }

  #gather(gathered: Buffer, chunk: Uint8Array): void {
    for (let done = 0; done < chunk.length; ) {
      const room = this.#gatherEnd - this.#gatheredBytes
      const piece = chunk.subarray(done, done + room)
      if (!isAt(gathered, this.#gatheredBytes, piece)) gathered.set(piece, this.#gatheredBytes)
      if (this.#gatheredBytes === 0) this.#gatheredSinceMs = performance.now()
      this.#gatheredBytes += piece.length
      done += piece.length
      if (piece.length === room) this.flush()
    }
    if (performance.now() - this.#gatheredSinceMs > GATHER_MS) this.flush()
  }

  #findDirect(): void {
    this.#mayBeDirect = false
    this.#direct = DirectWriter.find(this.#open(), this.#position, this.#beforeWrite)
    if (this.#direct) this.#descriptor = undefined
  }

  #close(): void {
    if (this.#gathered) giveBack(this.#gathered)
    this.#gathered = undefined
    this.#gatheredBytes = 0
    this.#direct?.close()
    this.#direct = undefined
    if (this.#descriptor !== undefined) closeSync(this.#descriptor)
    this.#descriptor = undefined
  }

  #writeAll(bytes: Uint8Array): void {
    this.#beforeWrite(bytes)
    const descriptor = this.#open()
    for (let done = 0; done < bytes.length; ) {
      const written = inTurn(this.#turns, this.#path, () =>
        writeSync(descriptor, bytes, done, bytes.length - done, this.#position),
      )
      done += written
      this.#position += written
    }
  }

  #open(): number {
    if (this.#descriptor !== undefined) return this.#descriptor
    const { O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW } = constants
    const flags = O_WRONLY | O_CREAT | O_NOFOLLOW | (this.#isWhole ? O_EXCL : 0)
    // A file in one part is never opened for writing again, so create it read-only.
    const mode = this.#isWhole ? 0o444 : 0o644
    const open = (path: string): number => {
      try {
        return openSync(path, flags, mode)
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
        rmSync(path) // left by an earlier attempt; may be a link to a file of another copy
        return openSync(path, flags, mode)
      }
    }
    this.#descriptor = this.#folders.on(this.#path, open)
    return this.#descriptor
  }
}

/**
 * Gives a file in several parts its size before they arrive, and keeps what earlier attempts wrote. A killed attempt
 * may have left a link to another copy's file, which is removed, or a complete file that is already read-only. True:
 * there was a file of this size.
 */
export function preallocate(path: string, sizeBytes: number): boolean {
  const descriptor = onHeldPath(path, openToWrite, { makesFolders: true })
  using _ = atEndNow(() => closeSync(descriptor))
  if (fstatSync(descriptor).size === sizeBytes) return sizeBytes > 0
  ftruncateSync(descriptor, sizeBytes)
  return false
}

/**
 * Counts the bytes that an earlier attempt left of an object that comes in one piece and is written in order, so that
 * all before the end are there. 0: nothing, or not worth a request of its own. The last page may be cut short. A file of
 * full size counts if it is read-only; others were allocated for parts.
 */
export function countLeft(path: string, sizeBytes: number): number {
  const stats = lstatSync(path, { throwIfNoEntry: false })
  if (!stats?.isFile() || stats.nlink > 1 || stats.size > sizeBytes) return 0
  const isQuick = stats.mtimeMs - stats.birthtimeMs < QUICK_MS
  if (stats.size < QUICK_BYTES && isQuick) return 0
  if (stats.size === sizeBytes) return (stats.mode & 0o222) === 0 ? sizeBytes : 0
  return stats.size - (stats.size % PAGE_BYTES)
}

function openLeft(path: string): number {
  return openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
}

function openToWrite(path: string): number {
  const left = lstatSync(path, { throwIfNoEntry: false })
  if (left && !changeFileMode(path, 0o644)) rmSync(path) // not a regular file with a single link
  return openSync(path, constants.O_WRONLY | constants.O_CREAT | constants.O_NOFOLLOW, 0o644)
}
