import { statSync } from 'node:fs'
import type { Surroundings } from '../cache/surroundings.js'
import { openOrClose } from '../failure/closers.js'
import type { RemoteFallback } from '../feed/sources/node-supply.js'
import type { RangeReader } from '../feed/sources/range-source.js'
import type { ListedObject } from '../sources/source.js'

/** How long a reader may be silent before it is asked again, in ms. */
const STALL_TIMEOUT_MS = 10_000

/** The fallback of a feed for samples that no storage node can give: a folder, or the dataset's source. */
export async function openFallback(
  context: Surroundings,
  target: string,
  options: {
    readonly split: string | undefined
    readonly index: (folder: string) => Promise<{ root: string; table: RemoteFolderTable }>
  },
): Promise<RemoteFallback> {
  const { split, index } = options
  if (statSync(target, { throwIfNoEntry: false })?.isDirectory()) {
    const folder = split === undefined ? target : `${target}/${split}`
    return { kind: 'folder', folder: await index(folder) }
  }
  return { kind: 'ranges', reader: await openSourceReader(context, target, split) }
}

type RemoteFolderTable = Extract<RemoteFallback, { kind: 'folder' }>['folder']['table']

/** Reads parts of objects from the dataset's source. Lists the source on the first read. */
export async function openSourceReader(
  context: Surroundings,
  raw: string,
  split: string | undefined,
): Promise<RangeReader> {
  const [{ resolveDataset }, { withRetries }, { pathToKey }] = await Promise.all([
    import('../cache/names/resolve-dataset.js'),
    import('../sources/retry.js'),
    import('../manifest/key-to-path.js'),
  ])
  const source = await context.openSource(await resolveDataset(context, raw))
  const fetcher = await openOrClose(async (closers) => {
    closers.add(() => source.close())
    return source.openFetcher({ connections: 8 })
  })
  let listing: Promise<ReadonlyMap<string, ListedObject>> | undefined
  const list = async () => {
    const objects = new Map<string, ListedObject>()
    for await (const page of source.list({ isSequential: true, signal: context.signal }))
      for (const object of page) objects.set(object.key, object)
    return objects
  }
  return {
    name: source.url,
    async read(file, offset, length) {
      listing ??= list()
      const key = pathToKey(split === undefined ? file : `${split}/${file}`)
      const object = (await listing).get(key)
      if (!object) throw new Error(`${source.url} has no object ${key}`)
      const read = async () => {
        const chunks: Uint8Array[] = []
        const sink = (chunk: Uint8Array) => {
          chunks.push(Buffer.from(chunk))
          return 0
        }
        const { etag, versionId, sizeBytes } = object
        await fetcher.fetch({
          key,
          etag,
          versionId,
          sizeBytes,
          offset,
          length,
          stallTimeoutMs: STALL_TIMEOUT_MS,
          sink,
        })
        return Buffer.concat(chunks)
      }
      return withRetries(read, { signal: context.signal })
    },
    async close() {
      await fetcher.close()
      await source.close()
    },
  }
}
