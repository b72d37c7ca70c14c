import { z } from 'zod'
import { atEndNow } from '../../failure/closers.js'
import { DscError } from '../../failure/dsc-error.js'
import type { BytePath } from '../byte-path.js'
import type { ListedFile } from '../packed-files.js'
import { inflatedName, inflateFiles } from '../rows/inflate-files.js'
import type { SampleEncoding } from '../sample-encoding.js'
import type { IndexedSamples, IndexRequest, UnpackedFiles } from './format.js'
import { badIndex, folderOf, readIndexJson } from './index-json.js'
import { indexOffsetTables, ShardDamage, type ShardHead } from './offset-table.js'

/**
 * Lists the samples of shards. Each describes its columns between offsets and samples, so it can be read without the
 * `index.json` beside it, which a node with a stripe of the dataset may not have. If it exists, both must agree. Format:
 * streaming/base/format/mds/writer.py of mosaicml-streaming.
 */
export function indexMds(request: IndexRequest): IndexedSamples {
  const counts = new Map<BytePath, ReadonlyMap<string, number>>()
  return indexOffsetTables(request, (shard, head) => {
    const folder = folderOf(shard.path)
    if (!counts.has(folder)) counts.set(folder, readCounts(request, folder))
    requireCount(shard, head, counts.get(folder)!)
    return parseConfig(head)
  })
}

/** Unpacks shards compressed as a whole (`.mds.zstd`) once, like rows of Parquet files. */
export async function unpackMds(request: IndexRequest): Promise<UnpackedFiles | undefined> {
  const { root, files, rows, onProgress } = request
  if (files.every(({ path }) => inflatedName(path) === undefined)) return undefined
  if (!rows)
    throw new DscError('USAGE', 'compressed MDS shards are fed from a whole copy, not from a part of it', {
      hint: 'prepare the dataset without --stripe, or write it with MDSWriter(compression=None)',
    })
  const folders = [...new Set(files.map(({ path }) => folderOf(path)))]
  const sizes = new Map(folders.map((folder) => [folder, readSizes(request, folder)]))
  const sizeOf = ({ path }: ListedFile) => {
    const folder = folderOf(path)
    return sizes.get(folder)!.get(inflatedName(path)?.slice(folder.length) ?? '')
  }
  const place = await rows.openPlace(root, ['MDS shards'], 'rows')
  using _ = atEndNow(() => place.close())
  const { writePath: folder, makeRoom, settle } = place
  const beside = folders.map((each) => `${each}index.json`)
  const unpacked = await inflateFiles({ root, files, beside, sizeOf, folder, makeRoom, settle, onProgress })
  return { root: place.readPath, files: unpacked }
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
      raw_data: z.looseObject({ basename: z.string(), bytes: z.number().int().nonnegative().optional() }),
    }),
  ),
})

/** Returns the shards of a folder listed in `index.json`; empty without that file. */
function readShards({ root }: IndexRequest, folder: BytePath) {
  const raw = readIndexJson(root, folder)
  if (raw === undefined) return []
  const { success, data } = INDEX.safeParse(raw)
  if (!success) throw badIndex(folder, 'expected shards with a number of samples and raw_data each')
  return data.shards
}

/** Name of shard → its number of samples. */
function readCounts(request: IndexRequest, folder: BytePath): ReadonlyMap<string, number> {
  return new Map(readShards(request, folder).map(({ raw_data, samples }) => [raw_data.basename, samples]))
}

/** Name of shard → its size in bytes. */
function readSizes(request: IndexRequest, folder: BytePath): ReadonlyMap<string, number | undefined> {
  return new Map(readShards(request, folder).map(({ raw_data }) => [raw_data.basename, raw_data.bytes]))
}

function requireCount(shard: ListedFile, { count }: ShardHead, counts: ReadonlyMap<string, number>): void {
  const expected = counts.get(shard.path.slice(folderOf(shard.path).length))
  if (expected !== undefined && expected !== count)
    throw new ShardDamage(0, `it has ${count} samples, ${expected} by index.json`)
}
