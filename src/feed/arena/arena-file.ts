import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { closeSync, ftruncateSync, openSync, readSync, statfsSync, unlinkSync } from 'node:fs'
import { join } from 'node:path'
import { DscError } from '../../failure/dsc-error.js'
import { writeFully } from './write-fully.js'

/** The memory that the feed and its clients share: one unnamed file on a memory file system. */
export interface ArenaFile {
  readonly fd: number
  /** Room for samples, in bytes; it begins at `ARENA_BASE`. */
  readonly bytes: number
  /** Stored at the start of the file, so that a client can check that it opened the right one. */
  readonly nonce: string
  /** Path at which other processes of this user open it while this process lives. */
  readonly path: string
  /** Moves bytes towards the start; the ranges may overlap. */
  readonly move: (from: number, to: number, length: number) => void
  read(target: Uint8Array, at: number): void
  /** Fills `length` bytes with 0xDB. */
  poison(at: number, length: number): void
  close(): void
}

/** Where samples begin in the file, in bytes; the page before it holds the nonce. */
export const ARENA_BASE = 4096

const CHUNK_BYTES = 1 << 20

/** Takes half a second at 0.4 GB/s. */
const RESERVED_AT_ONCE_BYTES = 200 * 2 ** 20
/** Reserves the first $2 bytes of the file $1, $3 at a time. */
const RESERVE_SCRIPT =
  'at=0; while [ $at -lt $2 ]; do fallocate -o $at -l $(($2 - at < $3 ? $2 - at : $3)) "$1" || exit; at=$((at + $3)); done'

/** Bytes that this user can still use on the file system of `folder`. */
export function freeBytesOf(folder: string): number {
  const { bavail, bsize } = statfsSync(folder)
  return bavail * bsize
}

/**
 * Makes an arena of `bytes` under `folder` and unlinks it at once, so the kernel frees it when the last process that
 * holds it ends, however it dies.
 */
export function openArenaFile(folder: string, bytes: number): ArenaFile {
  const freeBytes = freeBytesOf(folder)
  if (freeBytes < bytes)
    throw new DscError(
      'FEED_MEMORY',
      `${folder} has ${freeBytes} bytes free, but the feed is to use ${bytes}`,
      {
        hint: `dsc feed serve --memory ${Math.floor(freeBytes / 2 ** 20)}MiB, or a larger /dev/shm (docker run --shm-size)`,
      },
    )
  const name = join(folder, `dsc-feed-${process.pid}-${process.hrtime.bigint()}`)
  const fd = openSync(name, 'wx+', 0o600)
  unlinkSync(name)
  ftruncateSync(fd, ARENA_BASE + bytes)
  const nonce = randomBytes(16).toString('hex')
  writeFully(fd, Buffer.from(nonce), 0)
  const scratch = Buffer.alloc(CHUNK_BYTES)
  // First touches of tmpfs pages run at 0.4 GB/s here, later ones at 5. fallocate(1) touches all pages in the
  // background and keeps their content; without that program the first epoch pays. It works in pieces, each of which
  // reopens the file. That fails once this process has ended, so memory of a killed feed is touched, and held, for one
  // piece at most.
  const path = `/proc/${process.pid}/fd/${fd}`
  const words = [path, String(ARENA_BASE + bytes), String(RESERVED_AT_ONCE_BYTES)]
  const reserving = spawn('sh', ['-c', RESERVE_SCRIPT, 'dsc-feed-reserve', ...words], { stdio: 'ignore' })
  reserving.on('error', () => {})
  reserving.unref()
  return {
    fd,
    bytes,
    nonce,
    path,
    move(from, to, length) {
      for (let done = 0; done < length; done += CHUNK_BYTES) {
        const part = scratch.subarray(0, Math.min(CHUNK_BYTES, length - done))
        readSync(fd, part, 0, part.length, from + done)
        writeFully(fd, part, to + done)
      }
    },
    read: (target, at) => void readSync(fd, target, 0, target.length, at),
    poison: (at, length) => writeFully(fd, Buffer.alloc(length, 0xdb), at),
    close() {
      reserving.kill()
      closeSync(fd)
    },
  }
}
