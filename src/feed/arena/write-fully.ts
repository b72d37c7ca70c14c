import { writeSync } from 'node:fs'

/** Writes all of `bytes`; tmpfs answers a full file system with an error or with a short count, never with SIGBUS. */
export function writeFully(fd: number, bytes: Uint8Array, at: number): void {
  const count = writeSync(fd, bytes, 0, bytes.length, at)
  if (count !== bytes.length)
    throw Object.assign(new Error(`only ${count} of ${bytes.length} bytes fit into the arena`), {
      code: 'ENOSPC',
    })
}
