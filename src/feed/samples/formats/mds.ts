import { z } from 'zod'
import type { BytePath } from '../byte-path.js'
import type { ListedFile } from '../list-folder.js'
import type { SampleEncoding } from '../sample-encoding.js'
import type { Format, IndexRequest } from './format.js'
import { badIndex, folderOf, readIndexJson } from './index-json.js'
import { indexOffsetTables, ShardDamage, type ShardHead } from './offset-table.js'

/**
 * Shards of MosaicML Streaming: each describes its columns between offsets and samples, so that it can be read without
 * the `index.json` beside it, which a node with a stripe of the dataset may not have. Where it is there, both must agree.
 * Format: streaming/base/format/mds/writer.py of mosaicml-streaming.
 */
export const MDS: Format = {
  recognition: { title: 'MDS shards', holdsSamples: (path) => /\.mds$/i.test(path) },
  index(request) {
    const counts = new Map<BytePath, ReadonlyMap<string, number>>()
    return indexOffsetTables(request, (shard, head) => {
      const folder = folderOf(shard.path)
      if (!counts.has(folder)) counts.set(folder, readCounts(request, folder))
      requireCount(shard, head, counts.get(folder)!)
      return parseConfig(head)
    })
  },
}

const CONFIG = z.looseObject({
  version: z.literal(2),
  format: z.literal('mds'),
  column_names: z.array(z.string()),
  column_encodings: z.array(z.string()),
  column_sizes: z.array(z.number().int().nonnegative().nullable()),
})

function parseConfig({ count, config }: ShardHead): SampleEncoding {
  const at = 4 * (count + 2)
  let raw: unknown
  try {
    raw = JSON.parse(config.toString())
  } catch {
    throw new ShardDamage(at, 'the description of its columns is no JSON')
  }
  const { success, data } = CONFIG.safeParse(raw)
  const columns = data?.column_names
  if (
    !success ||
    data.column_encodings.length !== columns!.length ||
    data.column_sizes.length !== columns!.length
  )
    throw new ShardDamage(
      at,
      'expected the columns of an MDS shard of version 2, with a name, an encoding and a size each',
    )
  return { format: 'mds', columns, types: data.column_encodings, sizes: data.column_sizes }
}

const INDEX = z.looseObject({
  shards: z.array(
    z.looseObject({
      samples: z.number().int().nonnegative(),
      raw_data: z.looseObject({ basename: z.string() }),
    }),
  ),
})

/** Name of shard → its samples by `index.json`; empty where there is none. */
function readCounts({ root }: IndexRequest, folder: BytePath): ReadonlyMap<string, number> {
  const raw = readIndexJson(root, folder)
  if (raw === undefined) return new Map()
  const { success, data } = INDEX.safeParse(raw)
  if (!success) throw badIndex(folder, 'expected shards with a number of samples and raw_data each')
  return new Map(data.shards.map(({ raw_data, samples }) => [raw_data.basename, samples]))
}

function requireCount(shard: ListedFile, { count }: ShardHead, counts: ReadonlyMap<string, number>): void {
  const expected = counts.get(shard.path.slice(folderOf(shard.path).length))
  if (expected !== undefined && expected !== count)
    throw new ShardDamage(0, `it has ${count} samples, ${expected} by index.json`)
}
