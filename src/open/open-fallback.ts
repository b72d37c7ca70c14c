import { statSync } from 'node:fs'
import type { Surroundings } from '../cache/surroundings.js'
import { openOrClose } from '../failure/closers.js'
import type { RemoteFallback } from '../feed/sources/node-supply.js'
import type { RangeReader } from '../feed/sources/range-source.js'
import type { ListedObject } from '../sources/source.js'

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
  const [{ resolveDataset }, { openRangeReader }, { pathToKey }] = await Promise.all([
    import('../cache/names/resolve-dataset.js'),
    import('./open-range-reader.js'),
    import('../manifest/key-to-path.js'),
  ])
  // A feed that is closed waits for nothing: a read of a store that is away would be tried again for minutes.
  const closing = new AbortController()
  const signal = AbortSignal.any([context.signal, closing.signal])
  const source = await context.openSource(await resolveDataset(context, raw))
  const reader = await openOrClose(async (closers) => {
    closers.add(() => source.close())
    return openRangeReader(source, { connections: 8, signal })
  })
  let listing: Promise<ReadonlyMap<string, ListedObject>> | undefined
  const list = async () => {
    const objects = new Map<string, ListedObject>()
    for await (const page of source.list({ isSequential: true, signal }))
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
      return reader.read(object, offset, length)
    },
    async close() {
      closing.abort()
      await reader.close()
      await source.close()
    },
  }
}
