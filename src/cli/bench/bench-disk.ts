import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { type FileHandle, open } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { Figure } from './figure.js'

const CHUNK_BYTES = 4 * 1024 * 1024
/** Bytes between flushes: few enough that a slow disk stops in time. */
const FLUSH_BYTES = 16 * 1024 * 1024
const SMALL_FILE_BYTES = 4096
/** Maximum number of files in the small-file check. */
export const SMALL_FILES = 500

/** Limits of a check. */
export interface BenchLimits {
  /** Time per figure, in ms. */
  readonly limitMs: number
  readonly signal: AbortSignal
}

/** Writes up to `sizeBytes` below `folder`, reads them back from the disk, and writes small files. */
export async function benchDisk(
  folder: string,
  sizeBytes: number,
  limits: BenchLimits,
): Promise<readonly Figure[]> {
  const path = join(folder, 'large')
  const writes = await writeLarge(path, sizeBytes, limits)
  const reads = (await dropFromMemory(path)) ? await readLarge(path, limits) : undefined
  const files = await writeSmall(folder, limits)
  return [
    { part: 'disk', what: 'writes', value: writes },
    ...(reads === undefined ? [] : [{ part: 'disk' as const, what: 'reads' as const, value: reads }]),
    { part: 'disk', what: 'small files', value: files },
  ]
}

async function writeLarge(path: string, sizeBytes: number, limits: BenchLimits): Promise<number> {
  const chunk = randomBytes(CHUNK_BYTES) // random, so that a compressing disk does not look faster than it is
  return withFile(path, 'wx', (file) =>
    measureRate(limits, async (written) => {
      if (written >= sizeBytes) return 0
      await file.write(chunk)
      if ((written + CHUNK_BYTES) % FLUSH_BYTES === 0) await file.datasync()
      return CHUNK_BYTES
    }),
  )
}

async function readLarge(path: string, limits: BenchLimits): Promise<number> {
  const chunk = Buffer.allocUnsafe(CHUNK_BYTES)
  return withFile(path, 'r', (file) =>
    measureRate(limits, async () => (await file.read(chunk, 0, CHUNK_BYTES)).bytesRead),
  )
}

async function writeSmall(folder: string, limits: BenchLimits): Promise<number> {
  const content = randomBytes(SMALL_FILE_BYTES)
  return measureRate(limits, async (done) => {
    if (done >= SMALL_FILES) return 0
    await withFile(join(folder, `small-${done}`), 'wx', async (file) => {
      await file.write(content)
      await file.sync()
    })
    return 1
  })
}

/** Drops the file's pages from the kernel's cache, so that reads hit the disk. False if that is not possible. */
async function dropFromMemory(path: string): Promise<boolean> {
  // Node cannot call posix_fadvise; coreutils' dd can.
  const words = [`of=${path}`, 'oflag=nocache', 'conv=notrunc,fdatasync', 'count=0', 'status=none']
  return promisify(execFile)('dd', ['if=/dev/null', ...words]).then(
    () => true,
    () => false,
  )
}

async function withFile<T>(path: string, flags: string, use: (file: FileHandle) => Promise<T>): Promise<T> {
  await using file = await open(path, flags, 0o600)
  return await use(file)
}

/** Repeats `step` until it is done (0) or time is up; returns the amount done per second. */
async function measureRate(
  { limitMs, signal }: BenchLimits,
  step: (done: number) => Promise<number>,
): Promise<number> {
  const startMs = performance.now()
  let done = 0
  for (;;) {
    signal.throwIfAborted()
    const more = await step(done)
    done += more
    const tookMs = performance.now() - startMs
    if (more === 0 || tookMs > limitMs) return (1000 * done) / tookMs
  }
}
