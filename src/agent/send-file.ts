import type { FileHandle } from 'node:fs/promises'
import type { ServerResponse } from 'node:http'
import type { Range } from './local-copies.js'

/** Read from disk and written to the connection at once, bytes: so large that a chunk costs nothing. */
const MAX_CHUNK_BYTES = 512 * 1024
const MIN_CHUNK_BYTES = 64 * 1024
/** Shared by the files being sent, bytes: thousands of clients that take nothing must not fill the memory. */
const CHUNKS_BYTES = 64 * 1024 * 1024

/** Files being sent by this process. */
let sending = 0

/**
 * Sends a range of a file that is open, and ends the answer. One buffer per file, which the connection has taken before
 * it is filled again.
 */
export async function sendOpenFile(
  { file, path }: { readonly file: FileHandle; readonly path: string },
  range: Range,
  response: ServerResponse,
): Promise<void> {
  sending += 1
  try {
    const share = Math.max(MIN_CHUNK_BYTES, Math.min(MAX_CHUNK_BYTES, Math.floor(CHUNKS_BYTES / sending)))
    const buffer = Buffer.allocUnsafeSlow(Math.min(range.length, share))
    for (let sent = 0; sent < range.length; ) {
      const wanted = Math.min(buffer.length, range.length - sent)
      const { bytesRead } = await file.read(buffer, 0, wanted, range.offset + sent)
      if (bytesRead === 0) throw new Error(`${path} ends ${range.length - sent} bytes early`)
      await write(response, buffer.subarray(0, bytesRead))
      sent += bytesRead
    }
    response.end()
  } finally {
    sending -= 1
  }
}

/** Resolves when the connection has taken the chunk; rejects when it is gone. */
function write(response: ServerResponse, chunk: Uint8Array): Promise<void> {
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
