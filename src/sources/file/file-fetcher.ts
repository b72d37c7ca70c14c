import { createHash } from 'node:crypto'
import { constants } from 'node:fs'
import { type FileHandle, open, realpath, stat } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { SourceFailure } from '../../failure/source-failure.js'
import type { ObjectFacts } from '../../proof/object-facts.js'
import type { Fetcher, FetchRequest, InspectRequest, OpenFetcher } from '../source.js'
import { describeFileError } from './file-failure.js'

const READ_BYTES = 512 * 1024
/** A file system keeps no checksum. */
const NO_FACTS: ObjectFacts = { checksums: [], uploadPartBytes: null, isEtagMd5: false }

/** Opens a fetcher for the directory given as location. */
export const openFileFetcher: OpenFetcher = ({ location }) => new FileFetcher(location as string)

/** Reads files of a directory. */
export class FileFetcher implements Fetcher {
  readonly #directory: string

  constructor(directory: string) {
    this.#directory = directory
  }

  async fetch(request: FetchRequest): Promise<void> {
    const what = `file://${join(this.#directory, request.key)}`
    await using file = await openInside(this.#directory, request.key, what)
    requireUnchanged(request, await file.stat(), what)
    request.onFacts?.(NO_FACTS)
    await readRange(file, request, what)
    requireUnchanged(request, await file.stat(), what)
  }

  /** Refuses a file that was written since it was listed: a killed run may have read it while that happened. */
  async inspect(request: InspectRequest): Promise<ObjectFacts> {
    const what = `file://${join(this.#directory, request.key)}`
    await using file = await openInside(this.#directory, request.key, what)
    requireUnchanged(request, await file.stat(), what)

    return NO_FACTS
  }

  async close(): Promise<void> {}
}

/** Changes whenever size or modification time changes; never looks like an MD5. */
export function fileEtag(stats: { size: number; mtimeMs: number }): string {
  return `file-${createHash('sha256').update(`${stats.size}:${stats.mtimeMs}`).digest('hex').slice(0, 32)}`
}

async function openInside(directory: string, key: string, what: string): Promise<FileHandle> {
  try {
    const root = await realpath(directory.replace(/(?<=.)\/+$/, ''))
    // The source is a single file.
    if (key === basename(directory) && !(await stat(root)).isDirectory())
      return await open(root, constants.O_RDONLY | constants.O_NOFOLLOW)
    const target = await realpath(join(root, key))
    if (!target.startsWith(`${root}/`))
      throw new SourceFailure('SOURCE_CHANGED', `${what}: expected a file inside ${root}, found ${target}`, {
        hint: 'a symlink leads out of the source since it was listed: dsc prepare <dataset> --refresh',
      })
    return await open(target, constants.O_RDONLY | constants.O_NOFOLLOW)
  } catch (error) {
    throw describeFileError(error, what)
  }
}

async function readRange(file: FileHandle, request: FetchRequest, what: string): Promise<void> {
  for (let done = 0; done < request.length; ) {
    request.signal?.throwIfAborted()
    const length = Math.min(READ_BYTES, request.length - done)
    const { bytesRead, buffer } = await file.read(
      Buffer.allocUnsafe(length),
      0,
      length,
      request.offset + done,
    )
    if (bytesRead === 0)
      throw new SourceFailure(
        'SOURCE_TRUNCATED',
        `${what}: expected ${request.length} bytes, found ${done}`,
        { isTransient: true },
      )
    const pauseMs = request.sink(buffer.subarray(0, bytesRead))
    if (pauseMs > 0) await sleep(pauseMs)
    done += bytesRead
  }
}

function requireUnchanged(
  request: Pick<FetchRequest, 'etag' | 'sizeBytes'>,
  stats: { size: number; mtimeMs: number },
  what: string,
): void {
  if (request.etag === null || fileEtag(stats) === request.etag) return
  throw new SourceFailure(
    'SOURCE_CHANGED',
    stats.size === request.sizeBytes
      ? `${what}: the file was written since it was listed, last at ${new Date(stats.mtimeMs).toISOString()}`
      : `${what}: the file changed since it was listed (expected ${request.sizeBytes} bytes, found ${stats.size})`,
    { hint: 'dsc prepare <dataset> --refresh' },
  )
}
