import { readSync } from 'node:fs'
import { allocateForCrc32, crc32 } from '../../wasm/crc32.js'

const READ_BYTES = 1 << 20
const scratch = { bytes: undefined as Buffer | undefined }

/** CRC-32 of `length` bytes of an open file from `offset` on; undefined when the file ends before them. */
export function checksumRange(fd: number, offset: number, length: number): number | undefined {
  scratch.bytes ??= allocateForCrc32(READ_BYTES)
  let value = 0
  for (let done = 0; done < length; ) {
    const read = readSync(fd, scratch.bytes, 0, Math.min(READ_BYTES, length - done), offset + done)
    if (read === 0) return undefined
    value = crc32(scratch.bytes.subarray(0, read), value)
    done += read
  }
  return value
}
