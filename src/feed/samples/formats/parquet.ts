import { DscError } from '../../../failure/dsc-error.js'
import { rowsName } from '../rows/rows-paths.js'
import { unpackRows } from '../rows/unpack-rows.js'
import type { TableFile } from '../sample-table.js'
import { SampleTableBuilder } from '../sample-table-builder.js'
import type { Format, IndexedSamples, IndexRequest } from './format.js'

/** Rows of Parquet files, Hugging Face's folders of them among others: each is a sample, unpacked once on a node. */
export const PARQUET: Format = {
  recognition: { title: 'Parquet files', holdsSamples: (path) => /\.parquet$/i.test(path) },
  hasOwnIndex: true,
  index,
}

async function index({ root, files, rows, onProgress }: IndexRequest): Promise<IndexedSamples> {
  if (!rows)
    throw new DscError('USAGE', 'rows of Parquet files are fed from a whole copy, not from a part of it', {
      hint: 'prepare the dataset without --stripe, or write its rows into tar shards',
    })
  const place = await rows.openPlace(root, rows.columns)
  try {
    const { writePath: folder, makeRoom, settle } = place
    const request = { root, files, columns: rows.columns, folder, makeRoom, settle, onProgress }
    const indexes = await unpackRows(request)
    const samples = new SampleTableBuilder()
    for (const [file, { lengths, crcs }] of indexes.entries()) {
      let offset = 0
      for (let row = 0; row < lengths.length; row++) {
        const length = lengths[row]!
        samples.addRow({ file, offset, length, crc32: crcs[row]! })
        offset += length
      }
    }
    const tableFiles = files.map(
      ({ path }): TableFile => ({ path: rowsName(path), encoding: { format: 'row' }, rowName: path }),
    )
    return { table: samples.build(tableFiles), damaged: [], root: place.readPath }
  } finally {
    place.close()
  }
}
