import { readdir, realpath, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { DscError } from '../../failure/dsc-error.js'
import type { Dataset } from '../../model/dataset.js'
import { parseSourceUrl } from '../../model/source-url.js'
import type { ListedObject, Source } from '../source.js'
import { describeFileError } from './file-failure.js'
import { FileFetcher, fileEtag } from './file-fetcher.js'

const PAGE_OBJECTS = 1000

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
      for await (const object of walk(root, { directory: root, prefix: '', above: new Set([root]) })) {
        signal?.throwIfAborted()
        page.push(object)
        if (page.length === PAGE_OBJECTS) {
          yield page
          page = []
        }
      }
      if (page.length > 0) yield page
    },
    openFetcher: async () => new FileFetcher(directory),
    describeAccess: async () => ({ scheme: 'file', location: directory }),
    async close() {},
  }
}

interface WalkedFolder {
  readonly directory: string
  /** What the keys of the files in it begin with. */
  readonly prefix: string
  /** The real directories on the way, against cycles. */
  readonly above: ReadonlySet<string>
}

/** Yields files in the byte order of their keys. */
async function* walk(root: string, { directory, prefix, above }: WalkedFolder): AsyncGenerator<ListedObject> {
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
    if (entry.isDirectory()) {
      yield* walk(root, { directory: path, prefix: `${key}/`, above: new Set([...above, path]) })
    } else if (entry.isFile()) yield await describeFound(path, key)
    else if (entry.isSymbolicLink()) {
      const target = await realpath(path).catch(() => undefined)
      if (target === undefined || !`${target}/`.startsWith(`${root}/`) || above.has(target)) continue
      const stats = await stat(target)
      if (stats.isDirectory()) {
        yield* walk(root, { directory: target, prefix: `${key}/`, above: new Set([...above, target]) })
      } else if (stats.isFile()) yield describeFile(key, stats)
    }
  }
}

/** Names that are no UTF-8 come with a sign in the place of each wrong byte, and lead to nothing. */
async function describeFound(path: string, key: string): Promise<ListedObject> {
  try {
    return describeFile(key, await stat(path))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT' || !key.includes('\ufffd'))
      throw describeFileError(error, `file://${path}`)
    throw new DscError('KEY_UNSAFE', `file://${path}: its name is not UTF-8`, {
      hint: 'rename it: convmv finds and renames such files',
      cause: error,
    })
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
