import { createHash, randomBytes } from 'node:crypto'
import type { BytePath } from '../byte-path.js'
import { toBytes } from '../byte-path.js'

/** Stands for the way in which rows are written: those that were written in another way are not used. */
const METHOD = 'dsc rows 2'

/** Where the rows of a Parquet file and their index are, relative to the folder of rows. */
export const rowsName = (path: BytePath): BytePath => `${path}.rows`
const indexName = (path: BytePath): BytePath => `${path}.index`
const lengthsName = (path: BytePath): BytePath => `${path}.lengths`

/** `rows`: rows and an index of them · `lengths`: the index alone, of rows that are not unpacked. */
export type RowsKept = 'rows' | 'lengths'

/** Where they are in full; `rows` is undefined where none are kept. */
export function rowsPathsOf(
  folder: BytePath,
  path: BytePath,
  kept: RowsKept,
): { readonly rows: Buffer | undefined; readonly index: Buffer } {
  if (kept === 'lengths') return { rows: undefined, index: toBytes(`${folder}/${lengthsName(path)}`) }
  return { rows: toBytes(`${folder}/${rowsName(path)}`), index: toBytes(`${folder}/${indexName(path)}`) }
}

/** A name for the folder of rows that are these, whatever tells them from others: columns and the like. */
export function rowsFolderName(what: readonly unknown[]): string {
  return createHash('sha256')
    .update(JSON.stringify([METHOD, ...what]))
    .digest('hex')
    .slice(0, 16)
}

/** Tells what is not finished from all else, and from what others have not finished. */
export function randomSuffix(): string {
  return `part-${randomBytes(6).toString('hex')}`
}
