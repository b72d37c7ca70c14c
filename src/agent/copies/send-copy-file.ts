import type { ServerResponse } from 'node:http'
import { openCopyFile, openCopyFileHere } from '../../cache/open-copy-file.js'
import type { Copy } from '../../model/copy.js'
import type { QuickFile } from '../../platform/quick-file.js'
import type { Range } from './local-copies.js'
import { SendBuffers, SMALL_BYTES } from './send-buffers.js'

/** A range of a file of a copy. */
interface SentFile {
  /** The cache's root. */
  readonly root: string
  readonly copy: Copy
  /** Absolute path. */
  readonly path: string
  readonly range: Range
}

/** Shared by all files that this process sends. */
export const buffers = new SendBuffers()

/**
 * Sends a range of a file of a copy and ends the answer; `begin` writes the response head once the file is open.
 * Rejects before that if the file cannot be opened, and later if the client goes or the file is too short.
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
 * Does the same as `sendCopyFile`, synchronously, for at most 64 KiB. Returns false, with nothing sent, if only
 * `sendCopyFile` can do it. Throws if opening or reading fails, before anything is sent.
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
  response.end(body, () => buffers.takeBack(buffer)) // not called if the client has gone
  return true
}

/** Sends from one half of a buffer while filling the other; a range that fits whole is read and sent at once. */
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
        reading.catch(() => {}) // the failure surfaces once the client has taken the bytes before it
      } else response.end() // goes out together with the last piece
      await taken
    }
  } finally {
    await reading.catch(() => {}) // never close a file during a read
  }
}

/** Resolves once the connection has taken the chunk; rejects if the connection closes. */
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
