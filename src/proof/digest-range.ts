import type { FileHandle } from 'node:fs/promises'
import { throwIfStopped } from '../failure/throw-if-stopped.js'
import { createDigest, type DigestAlgorithm } from './digest.js'

const READ_BYTES = 1024 * 1024

/** The digest of a range of an open file; of the available bytes if the file ends earlier. */
export async function digestRange(
  file: FileHandle,
  range: { readonly offset: number; readonly length: number },
  options: { readonly algorithm: DigestAlgorithm; readonly signal: AbortSignal },
): Promise<Buffer> {
  const digest = createDigest(options.algorithm, range.length)
  const buffer = Buffer.allocUnsafe(Math.min(READ_BYTES, Math.max(1, range.length)))
  for (let done = 0; done < range.length; ) {
    throwIfStopped(options.signal)
    const length = Math.min(buffer.length, range.length - done)
    const { bytesRead } = await file.read(buffer, 0, length, range.offset + done)
    if (bytesRead === 0) break
    digest.update(buffer.subarray(0, bytesRead))
    done += bytesRead
  }
  return digest.finish()
}
