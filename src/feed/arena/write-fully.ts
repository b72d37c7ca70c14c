import { writeSync } from 'node:fs'

/** Writes all of `bytes`. On a full file system tmpfs returns an error or a short count, never SIGBUS. */
export function writeFully(fd: number, bytes: Uint8Array, at: number): void {
  const count = writeSync(fd, bytes, 0, bytes.length, at)
  if (count !== bytes.length)
    throw Object.assign(new Error(`only ${count} of ${bytes.length} bytes fit into the arena`), {
      code: 'ENOSPC',
    })
}
