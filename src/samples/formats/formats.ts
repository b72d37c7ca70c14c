import type { FormatName } from '../../model/sample-formats.js'
import type { BytePath } from '../byte-path.js'
import type { Recognition } from '../plan/sample-files.js'
import { inflatedName } from '../rows/inflate-files.js'
import { CSV, TSV } from './csv.js'
import type { Format, IndexedSamples, IndexRequest } from './format.js'
import { folderOf } from './index-json.js'
import { eitherWay, indexShardsAs } from './index-shards.js'
import { countIndexThreads, indexTarInThreads } from './index-tar-in-threads.js'
import { JSON_LINES } from './json-lines.js'
import { PARQUET } from './parquet.js'
import { PLAIN_FILES } from './plain-files.js'

/** Tar archives with samples as members. */
const TAR_SHARDS: Format = {
  recognition: {
    title: 'tar shards',
    mark: /\.tar/,
    holdsSamples: (path) => /\.tar$/i.test(path),
    takesAnyName: true,
  },
  index: indexTarShards,
}

/**
 * Lists the samples of tar shards. Members of one key are one sample, as in WebDataset (`MemberGroups`); if every key
 * has one member, samples are the members' contents.
 */
async function indexTarShards(request: IndexRequest): Promise<IndexedSamples> {
  const threads = countIndexThreads(request.files)
  if (threads > 1)
    return (
      (await indexTarInThreads('member', request, threads)) ??
      (await indexTarInThreads('tar', request, threads))!
    )
  return eitherWay((format) => indexShardsAs(format, request))
}

/** Shards of MosaicML Streaming. What reads them is loaded with the first: most folders have none. */
const MDS: Format = {
  recognition: { title: 'MDS shards', mark: /\.mds/, holdsSamples },
  unpack: async (request) => (await import('./index-mds.js')).unpackMds(request),
  index: async (request) => (await import('./index-mds.js')).indexMds(request),
}

/** A compressed shard counts, too, unless the folder also has it unpacked. */
function holdsSamples(path: BytePath, hasFile: (path: BytePath) => boolean): boolean {
  if (!/\.mds(\.\w+)?$/i.test(path)) return false // most paths, which need no closer look
  const inflated = inflatedName(path)
  return /\.mds$/i.test(inflated ?? path) && (inflated === undefined || !hasFile(inflated))
}

/** Chunks of LitData. What reads them is loaded with the first: most folders have none. */
const LITDATA: Format = {
  recognition: {
    title: 'LitData chunks',
    mark: /chunk-\d/,
    holdsSamples: (path, hasFile) =>
      /(^|\/)chunk-\d+-\d+(\.\w+)*\.bin$/.test(path) && hasFile(`${folderOf(path)}index.json`),
  },
  index: async (request) => (await import('./index-litdata.js')).indexLitdata(request),
}

/** All formats by name. The first whose files have most of a folder's bytes is the folder's; otherwise plain files. */
export const FORMATS: Readonly<Record<FormatName, Format>> = {
  shards: TAR_SHARDS,
  jsonl: JSON_LINES,
  csv: CSV,
  tsv: TSV,
  parquet: PARQUET,
  mds: MDS,
  litdata: LITDATA,
  files: PLAIN_FILES,
}

/** How to recognize the files of each format. */
export const RECOGNITIONS = Object.fromEntries(
  Object.entries(FORMATS).map(([name, { recognition }]) => [name, recognition]),
) as Readonly<Record<FormatName, Recognition>>
