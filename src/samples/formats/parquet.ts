import { atEndNow } from '../../failure/closers.js'
import { DscError, isDscError } from '../../failure/dsc-error.js'
import { chooseWindow } from '../plan/sample-groups.js'
import { findGroupEnds } from '../rows/row-groups.js'
import type { RowsIndex } from '../rows/rows-index.js'
import { type RowsKept, rowsFolderName, rowsName } from '../rows/rows-paths.js'
import type { RowsOptions } from '../rows/rows-place.js'
import { unpackRows } from '../rows/unpack-rows.js'
import type { SampleTable, TableFile } from '../sample-table.js'
import { SampleTableBuilder } from '../sample-table-builder.js'
import type { Format, IndexedSamples, IndexRequest } from './format.js'

/**
 * Rows of Parquet files, including those in Hugging Face's folders: each row is a sample. A node unpacks them once, or
 * reads them row group by row group if it has no room for that. The table is the same either way.
 */
export const PARQUET: Format = {
  recognition: {
    title: 'Parquet files',
    mark: /\.(parquet|parq|pq)/,
    holdsSamples: (path) => /\.(parquet|parq|pq)$/i.test(path),
    takesAnyName: true,
  },
  hasOwnIndex: true,
  index,
}

interface RowsRequest extends IndexRequest {
  readonly rows: RowsOptions
}

/** There is no room for unpacked rows. */
class NoRoom extends Error {}

async function index({ rows, ...request }: IndexRequest): Promise<IndexedSamples> {
  if (!rows)
    throw new DscError('USAGE', 'rows of Parquet files are fed from a whole copy, not from a part of it', {
      hint: 'prepare the dataset without --stripe, or write its rows into tar shards',
    })
  const { reading } = rows
  if (reading.kind === 'groups') return indexGroups({ ...request, rows }, { window: reading.window })
  try {
    const { indexes, root, isMadeBefore } = await readIndexes({ ...request, rows }, 'rows')
    const files = request.files.map(({ path }) => ({ path: rowsName(path), rowName: path }))
    return { table: makeTable(files, indexes), damaged: [], root, isMadeBefore }
  } catch (error) {
    if (!(error instanceof NoRoom)) throw error
    if (reading.kind === 'unpacked') throw error.cause
    return indexGroups({ ...request, rows }, { reason: (error.cause as Error).message.split('\n', 1)[0]! })
  }
}

async function indexGroups(
  request: RowsRequest,
  { window, reason }: { readonly window?: number; readonly reason?: string },
): Promise<IndexedSamples> {
  const { root, files, rows } = request
  const { columns } = rows
  const ends = await findGroupEnds({ root, files, columns })
  const { table, isMadeBefore } = await findLengths(request, ends.at(-1) ?? 0)
  const open = window ?? chooseWindow(table.totalBytes, ends.length)
  return { table, damaged: [], groups: { root, columns, ends, window: open, reason }, isMadeBefore }
}

/** Lengths of all rows, which take as long to measure as to unpack: the first node does it for all others. */
async function findLengths(
  request: RowsRequest,
  rowCount: number,
): Promise<{ readonly table: SampleTable; readonly isMadeBefore: boolean }> {
  const { files, rows, shared } = request
  const what = rowsFolderName(['lengths', rows.columns ?? null])
  const told = await shared?.find(what)
  if (told?.count === rowCount) return { table: told, isMadeBefore: true }
  const { indexes, isMadeBefore } = await readIndexes(request, 'lengths')
  const plain = files.map(({ path }) => ({ path, rowName: path }))
  const table = makeTable(plain, indexes)
  shared?.keep(what, table)
  return { table, isMadeBefore }
}

/** Returns the indexes of all files, making missing ones, and the folder of the rows. Rejects with NoRoom. */
async function readIndexes(
  { root, files, rows, onProgress }: RowsRequest,
  kept: RowsKept,
): Promise<{
  readonly indexes: readonly RowsIndex[]
  readonly root: string
  readonly isMadeBefore: boolean
}> {
  const { columns } = rows
  const place = await rows.openPlace(root, columns, kept)
  let isMadeBefore = true
  const makeRoom = (bytes: number) => {
    isMadeBefore = false
    return place.makeRoom(bytes).catch((cause: unknown) => {
      const isRoom = kept === 'rows' && isDscError(cause, 'QUOTA_EXCEEDED', 'DISK_FULL')
      throw isRoom ? new NoRoom('no room for rows', { cause }) : cause
    })
  }
  using _ = atEndNow(() => place.close())
  const { writePath: folder, settle } = place
  const request = { root, files, columns, kept, folder, makeRoom, settle, onProgress }
  return { indexes: await unpackRows(request), root: place.readPath, isMadeBefore }
}

function makeTable(
  files: readonly Pick<TableFile, 'path' | 'rowName'>[],
  indexes: readonly RowsIndex[],
): SampleTable {
  const samples = new SampleTableBuilder()
  for (const [file, { lengths, crcs }] of indexes.entries()) {
    let offset = 0
    for (let row = 0; row < lengths.length; row++) {
      const length = lengths[row]!
      samples.addRow({ file, offset, length, crc32: crcs[row]! })
      offset += length
    }
  }
  return samples.build(files.map((file) => ({ ...file, encoding: { format: 'row' } })))
}
