import { readdir, realpath, stat } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { DscError } from '../../failure/dsc-error.js'
import type { Dataset } from '../../model/dataset.js'
import { parseSourceUrl } from '../../model/source-url.js'
import type { ListedObject, ListOptions, Source } from '../source.js'
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
    async *list({ signal, onLeftOut }) {
      const root = await realpath(directory.replace(/(?<=.)\/+$/, '')).catch((error: unknown) => {
        throw describeFileError(error, shown)
      })
      const stats = await stat(root).catch((error: unknown) => {
        throw describeFileError(error, shown)
      })
      if (stats.isFile()) {
        yield [describeFile(basename(directory), stats)]
        return
      }
      let page: ListedObject[] = []
      for await (const object of walk(root, {
        directory: root,
        prefix: '',
        above: new Set([root]),
        onLeftOut,
      })) {
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
  /** Prefix of the keys of the files in this folder. */
  readonly prefix: string
  /** Real paths of the directories above, to detect cycles. */
  readonly above: ReadonlySet<string>
  readonly onLeftOut: ListOptions['onLeftOut']
}

/** Yields files in the byte order of their keys. */
async function* walk(root: string, folder: WalkedFolder): AsyncGenerator<ListedObject> {
  const { directory, prefix, above, onLeftOut } = folder
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
      yield* walk(root, { directory: path, prefix: `${key}/`, above: new Set([...above, path]), onLeftOut })
    } else if (entry.isFile()) yield await describeFound(path, key)
    else if (entry.isSymbolicLink()) {
      const target = await realpath(path).catch(() => undefined)
      const reason = leftOutBecause(target, root, above)
      if (target === undefined || reason !== undefined) {
        onLeftOut?.(key, reason ?? '')
        continue
      }
      const stats = await stat(target)
      if (stats.isDirectory()) {
        yield* walk(root, {
          directory: target,
          prefix: `${key}/`,
          above: new Set([...above, target]),
          onLeftOut,
        })
      } else if (stats.isFile()) yield describeFile(key, stats)
    } else onLeftOut?.(key, 'it is neither file, folder nor link')
  }
}

/** Reason for not following a link; undefined if it is followed. */
function leftOutBecause(
  target: string | undefined,
  root: string,
  above: ReadonlySet<string>,
): string | undefined {
  if (target === undefined) return 'the link leads nowhere'
  if (!`${target}/`.startsWith(`${root}/`)) return `the link leads out of the folder, to ${target}`
  return above.has(target) ? 'the link leads to a folder that it is in' : undefined
}

/** Names that are not UTF-8 are listed with a replacement character for each invalid byte, and lead to no file. */
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
