import type { Surroundings } from '../cache/surroundings.js'
import { formatGroupOrder } from '../feed/plan/group-order.js'
import { formatByteSize } from '../model/byte-size.js'
import type { Copy } from '../model/copy.js'
import type { Dataset } from '../model/dataset.js'
import { formatCount } from '../model/format-count.js'
import {
  explainLeftOut,
  explainSplits,
  type IndexOptions,
  indexSamples,
  type SampleFolder,
} from '../samples/index-samples.js'
import type { RowsReading } from '../samples/rows/rows-place.js'
import { listCopy } from './list-copy.js'
import { findRowsPlace } from './rows-place.js'
import { samplesCacheFolder } from './samples-folder.js'
import { openSharedTables } from './shared-tables.js'

/** How to list samples; the tables go to this user's cache unless `cacheFolder` is set. */
export type IndexFolderOptions = Omit<
  IndexOptions,
  'onProgress' | 'cacheFolder' | 'listing' | 'rows' | 'shared'
> & {
  readonly cacheFolder?: string | undefined
  /** Columns of rows; undefined: all. */
  readonly columns?: readonly string[] | undefined
  /** How to read rows of Parquet files; default: unpacked, and refused if there is no room for that. */
  readonly reading?: RowsReading | undefined
  /** The folder's copy: its dataset may declare how to read it, and its rows are unpacked beside its files. */
  readonly copy?: Copy | undefined
}

/** Lists the samples of a folder; reports progress, and anything left out. */
export async function indexFolder(
  context: Surroundings,
  folder: string,
  { copy, reading = { kind: 'unpacked' }, ...options }: IndexFolderOptions,
): Promise<SampleFolder> {
  const declared = await findDeclared(context, copy)
  const columns = options.columns ?? declared?.columns
  const cacheFolder = options.cacheFolder ?? samplesCacheFolder(context.environment)
  const listed = await indexSamples(folder, {
    ...options,
    format: options.format ?? declared?.format,
    dialect: options.dialect ?? declared?.dialect,
    cacheFolder,
    listing: copy && listCopy(copy, folder),
    shared: copy && (await openSharedTables(context, copy, folder)),
    rows: findRowsPlace(context, { columns, reading, copy, cacheFolder }),
    onProgress: (done, total) =>
      context.report.progress(`listing samples: ${done} of ${formatCount(total, 'file')}`),
  })
  context.report.progress(undefined)
  const leftOut = explainLeftOut(listed.leftOut)
  if (leftOut !== undefined) context.report.warn(leftOut)
  const splits = options.split === undefined ? explainSplits(listed) : undefined
  if (splits !== undefined) context.report.warn(splits)
  if (listed.groups?.reason !== undefined) context.report.warn(explainGroups(listed))
  return listed
}

/** Describes the shuffle for rows that could not be unpacked. */
function explainGroups({ table, groups }: SampleFolder): string {
  const { reason, window, ends } = groups!
  const bytes = Math.min(1, window / ends.length) * table.totalBytes
  return (
    `dsc: rows are not unpacked (${reason}), but read in row groups, in the order ${formatGroupOrder(window)}:\n` +
    `  shuffled through ${formatCount(window, 'row group')} of ${ends.length} at a time, which take ${formatByteSize(bytes)} of memory; --order shuffle refuses that`
  )
}

/** The dataset of a copy, which says how to read it if the caller does not. */
async function findDeclared(context: Surroundings, copy: Copy | undefined): Promise<Dataset | undefined> {
  if (!copy) return undefined
  const { datasets } = await context.config()
  return datasets.find(({ name }) => name === copy.dataset) ?? copy.source ?? undefined
}
