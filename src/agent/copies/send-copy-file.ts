import type { ServerResponse } from 'node:http'
import { openCopyFile, openCopyFileHere } from '../../cache/open-copy-file.js'
import type { Copy } from '../../model/copy.js'
import type { QuickFile } from '../../platform/quick-file.js'
import type { Range } from './local-copies.js'
import { SendBuffers, SMALL_BYTES } from './send-buffers.js'

/** A range of a file of a copy. */
interface SentFile {
  /** Of the cache. */
  readonly root: string
  readonly copy: Copy
  /** Absolute. */
  readonly path: string
  readonly range: Range
}

/** Of all files that this process sends. */
export const buffers = new SendBuffers()

/**
 * Sends a range of a file of a copy and ends the answer; `begin` writes its head once the file is open. Rejects before
 * that with what opening rejects with, later when the client goes or the file is too short.
 */
export async function sendCopyFile(
  { root, copy, path, range }: SentFile,
  response: ServerResponse,
  begin: () => void,
): Promise<void> {
  if (range.length === 0) {
    begin()
    response.end()
    return
  }
  const file = await openCopyFile(root, copy, path)
  try {
    begin()
    await buffers.use(range.length, (buffer) => sendRange({ file, path, range }, response, buffer))
  } finally {
    await file.close()
  }
}

/**
 * As `sendCopyFile`, within this turn, for at most 64 KiB. False: `sendCopyFile` has to do it, nothing was sent. Throws
 * what opening and reading throw, before anything is sent.
 */
export function sendCopyFileAtOnce(
  { root, copy, path, range }: SentFile,
  response: ServerResponse,
  begin: () => void,
): boolean {
  const { offset, length } = range
  if (length > SMALL_BYTES) return false
  const file = openCopyFileHere(root, copy, path)
  if (file === undefined) return false
  const buffer = buffers.lendSmall()
  const body = buffer.subarray(0, length)
  try {
    if (file.readHere(body, offset) < length) return false
  } finally {
    file.closeHere()
  }
  begin()
  response.end(body, () => buffers.takeBack(buffer)) // not called for a client that has gone
  return true
}

/** Sends from one half of a buffer while the other is filled; what fits whole is read and sent at once. */
async function sendRange(
  { file, path, range }: { readonly file: QuickFile; readonly path: string; readonly range: Range },
  response: ServerResponse,
  buffer: Buffer,
): Promise<void> {
  const half = range.length <= buffer.length ? buffer.length : buffer.length / 2
  const end = range.offset + range.length
  const readAt = async (at: number, from: number) => {
    const piece = buffer.subarray(from, from + Math.min(half, end - at))
    const bytesRead = await file.read(piece, at)
    if (bytesRead === 0) throw new Error(`${path} ends ${end - at} bytes early`)
    return piece.subarray(0, bytesRead)
  }
  let reading = readAt(range.offset, 0)
  try {
    for (let [at, from] = [range.offset, 0]; at < end; ) {
      const piece = await reading
      at += piece.length
      from = half - from
      const taken = writeChunk(response, piece)
      if (at < end) {
        reading = readAt(at, from)
        reading.catch(() => {}) // what it fails with is met when the client has taken what comes before it
      } else response.end() // leaves together with the last piece
      await taken
    }
  } finally {
    await reading.catch(() => {}) // nobody reads a file that is closed
  }
}

/** Resolves when the connection has taken the chunk; rejects when it is gone. */
export function writeChunk(response: ServerResponse, chunk: Uint8Array): Promise<void> {
  return new Promise((resolve, reject) => {
    const gone = () => reject(new Error('the client has gone'))
    response.once('close', gone)
    response.write(chunk, (error) => {
      response.off('close', gone)
      if (error) reject(error)
      else resolve()
    })
    if (response.destroyed) gone()
  })
}
