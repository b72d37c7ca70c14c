import { createHash } from 'node:crypto'
import { constants } from 'node:fs'
import { type FileHandle, open, readdir, realpath, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Dataset, parseSourceUrl } from '../../../model/dataset.js'
import type { Fetcher, FetchRequest, ListedObject, Source } from '../../source.js'
import { SourceFailure } from '../../source-failure.js'

const PAGE_OBJECTS = 1000
const READ_BYTES = 512 * 1024

/** Opens a directory as a source. Symlinks are followed only where they end inside the directory. */
export function openFileSource(dataset: Dataset): Source {
  const url = parseSourceUrl(dataset.source)
  if (url.scheme !== 'file') throw new RangeError(`expected a file:// source, found ${dataset.source}`)
  const { directory } = url
  const shown = `file://${directory}`
  return {
    url: shown,
    async *list({ signal }) {
      const root = await realpath(directory).catch((error: unknown) => {
        throw describeFileError(error, shown)
      })
      let page: ListedObject[] = []
      for await (const object of walk(root, root, '', new Set([root]))) {
        signal?.throwIfAborted()
        page.push(object)
        if (page.length === PAGE_OBJECTS) {
          yield page
          page = []
        }
      }
      if (page.length > 0) yield page
    },
    async openFetcher() {
      return createFileFetcher(directory)
    },
    async close() {},
  }
}

/** Yields files in the byte order of their keys. `above` holds the real directories on the way, against cycles. */
async function* walk(
  root: string,
  directory: string,
  prefix: string,
  above: ReadonlySet<string>,
): AsyncGenerator<ListedObject> {
  const entries = await readdir(directory, { withFileTypes: true }).catch((error: unknown) => {
    throw describeFileError(error, `file://${directory}`)
  })
  const named = entries.map((entry) => ({
    entry,
    sortKey: Buffer.from(entry.name + (entry.isDirectory() ? '/' : '')),
  }))
  named.sort((a, b) => Buffer.compare(a.sortKey, b.sortKey))
  for (const { entry } of named) {
    const path = join(directory, entry.name)
    const key = prefix + entry.name
    if (entry.isDirectory()) yield* walk(root, path, `${key}/`, new Set([...above, path]))
    else if (entry.isFile()) yield describeFile(key, await stat(path))
    else if (entry.isSymbolicLink()) {
      const target = await realpath(path).catch(() => undefined)
      if (target === undefined || !`${target}/`.startsWith(`${root}/`) || above.has(target)) continue
      const stats = await stat(target)
      if (stats.isDirectory()) yield* walk(root, target, `${key}/`, new Set([...above, target]))
      else if (stats.isFile()) yield describeFile(key, stats)
    }
  }
}

function describeFile(key: string, stats: { size: number; mtimeMs: number; ino: number }): ListedObject {
  return {
    key,
    sizeBytes: stats.size,
    etag: fileEtag(stats),
    versionId: null,
    checksum: null,
    modifiedAtMs: Math.floor(stats.mtimeMs),
  }
}

/** Changes whenever size or modification time does; never looks like an MD5. */
function fileEtag(stats: { size: number; mtimeMs: number }): string {
  return `file-${createHash('sha256').update(`${stats.size}:${stats.mtimeMs}`).digest('hex').slice(0, 32)}`
}

function createFileFetcher(directory: string): Fetcher {
  return {
    async fetch(request) {
      const what = `file://${join(directory, request.key)}`
      const file = await openInside(directory, request.key, what)
      try {
        requireUnchanged(request, await file.stat(), what)
        request.onFacts?.({ checksums: [], uploadPartBytes: null, isEtagMd5: false })
        await readRange(file, request, what)
        requireUnchanged(request, await file.stat(), what)
      } finally {
        await file.close()
      }
    },
    async inspect() {
      return { checksums: [], uploadPartBytes: null, isEtagMd5: false }
    },
    async close() {},
  }
}

async function openInside(directory: string, key: string, what: string): Promise<FileHandle> {
  try {
    const root = await realpath(directory)
    const target = await realpath(join(root, key))
    if (!target.startsWith(`${root}/`))
      throw new SourceFailure('SOURCE_CHANGED', `${what}: expected a file inside ${root}, found ${target}`, {
        isTransient: false,
        hint: 'a symlink leads out of the source since it was listed: dsc prepare --refresh',
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
        {
          isTransient: true,
        },
      )
    const pauseMs = request.sink(buffer.subarray(0, bytesRead))
    if (pauseMs > 0) await sleep(pauseMs)
    done += bytesRead
  }
}

function requireUnchanged(
  request: FetchRequest,
  stats: { size: number; mtimeMs: number },
  what: string,
): void {
  if (request.etag === null || fileEtag(stats) === request.etag) return
  throw new SourceFailure(
    'SOURCE_CHANGED',
    `${what}: the file changed since it was listed (expected ${request.sizeBytes} bytes, found ${stats.size})`,
    { isTransient: false, hint: 'dsc prepare --refresh' },
  )
}

function describeFileError(error: unknown, what: string): unknown {
  const code = (error as NodeJS.ErrnoException).code
  if (code === 'ENOENT' || code === 'ENOTDIR')
    return new SourceFailure('SOURCE_NOT_FOUND', `${what}: no such directory or file`, {
      isTransient: false,
      cause: error,
      hint: 'check the path; is the file system mounted on this node?',
    })
  if (code === 'EACCES' || code === 'EPERM')
    return new SourceFailure('SOURCE_DENIED', `${what}: no permission to read`, {
      isTransient: false,
      cause: error,
      hint: 'check the permissions of the directory for the user that runs dsc',
    })
  if (code === 'EIO' || code === 'ESTALE')
    return new SourceFailure('SOURCE_UNREACHABLE', `${what}: the file system fails to read (${code})`, {
      isTransient: true,
      cause: error,
      hint: 'check the file system that holds the source',
    })
  return error
}
