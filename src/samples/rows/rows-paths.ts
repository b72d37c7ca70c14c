import { createHash, randomBytes } from 'node:crypto'
import type { BytePath } from '../byte-path.js'
import { toBytes } from '../byte-path.js'

/** Version of the method that writes rows: rows written by another one are not used. */
const METHOD = 'dsc rows 2'

/** Path of a Parquet file's rows, relative to the folder of rows. */
export const rowsName = (path: BytePath): BytePath => `${path}.rows`
const indexName = (path: BytePath): BytePath => `${path}.index`
const lengthsName = (path: BytePath): BytePath => `${path}.lengths`

/** `rows`: rows and their index · `lengths`: only the index, for rows that are not unpacked. */
export type RowsKept = 'rows' | 'lengths'

/** Full paths; `rows` is undefined if no rows are kept. */
export function rowsPathsOf(
  folder: BytePath,
  path: BytePath,
  kept: RowsKept,
): { readonly rows: Buffer | undefined; readonly index: Buffer } {
  if (kept === 'lengths') return { rows: undefined, index: toBytes(`${folder}/${lengthsName(path)}`) }
  return { rows: toBytes(`${folder}/${rowsName(path)}`), index: toBytes(`${folder}/${indexName(path)}`) }
}

/** Name of a folder of rows, derived from everything that distinguishes them, such as columns. */
export function rowsFolderName(what: readonly unknown[]): string {
  return createHash('sha256')
    .update(JSON.stringify([METHOD, ...what]))
    .digest('hex')
    .slice(0, 16)
}

/** Distinguishes unfinished files from all others, and from those of other processes. */
export function randomSuffix(): string {
  return `part-${randomBytes(6).toString('hex')}`
}
