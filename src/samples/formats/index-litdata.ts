import { z } from 'zod'
import { DscError } from '../../failure/dsc-error.js'
import { type BytePath, toText } from '../byte-path.js'
import type { SampleEncoding } from '../sample-encoding.js'
import type { IndexedSamples, IndexRequest } from './format.js'
import { badIndex, folderOf, readIndexJson } from './index-json.js'
import { indexOffsetTables, ShardDamage } from './offset-table.js'

/**
 * Lists the items of chunks: the `index.json` beside them describes one. Format: litdata/streaming/writer.py and
 * item_loader.py (PyTreeLoader).
 */
export function indexLitdata(request: IndexRequest): IndexedSamples {
  const indexes = new Map<BytePath, Index>()
  return indexOffsetTables(request, (chunk, { count }) => {
    const folder = folderOf(chunk.path)
    const index = indexes.get(folder) ?? readIndex(request, folder)
    indexes.set(folder, index)
    const expected = index.counts.get(chunk.path.slice(folder.length))
    if (expected !== undefined && expected !== count)
      throw new ShardDamage(0, `it has ${count} items, ${expected} by index.json`)
    return index.encoding
  })
}

interface Index {
  readonly encoding: SampleEncoding
  /** Name of chunk → its number of items. */
  readonly counts: ReadonlyMap<string, number>
}

const INDEX = z.looseObject({
  chunks: z.array(z.looseObject({ filename: z.string(), chunk_size: z.number().int().nonnegative() })),
  config: z.looseObject({
    data_format: z.array(z.string()),
    data_spec: z.string().nullish(),
    compression: z.string().nullish(),
    encryption: z.unknown(),
    item_loader: z.string().nullish(),
  }),
})

function readIndex({ root }: IndexRequest, folder: BytePath): Index {
  const parsed = INDEX.safeParse(readIndexJson(root, folder))
  if (!parsed.success)
    throw badIndex(folder, 'expected chunks with names and sizes, and a config with data_format')
  const { chunks, config } = parsed.data
  const { data_format: types, data_spec: spec, compression, encryption, item_loader: loader } = config
  if (compression) throw refuse(folder, `compressed (${compression})`, 'without compression=')
  if (encryption) throw refuse(folder, 'encrypted', 'without encryption=')
  if (loader && loader !== 'PyTreeLoader')
    throw refuse(folder, `for ${loader}, without items of their own`, 'with the default item_loader')
  return {
    encoding: { format: 'litdata', types, spec: spec ?? undefined },
    counts: new Map(chunks.map(({ filename, chunk_size }) => [filename, chunk_size])),
  }
}

function refuse(folder: BytePath, what: string, instead: string): DscError {
  return new DscError(
    'USAGE',
    `the LitData chunks beside ${toText(folder)}index.json are ${what}, which the feed does not read`,
    { hint: `litdata.optimize(…) ${instead}; or --as files, to feed each chunk as one sample` },
  )
}
