import type { Copy, CopyOrigin, CopyState } from '../model/copy.js'
import type { SqlReader, SqlRow } from './sql-database.js'

/** Where a copy lies, in few words: for whoever looks whether 100,000 of them are still there. */
export type CopyPlace = Pick<Copy, 'copyId' | 'dataset' | 'version' | 'state' | 'origin' | 'path'>

/** Where the copies of a node lie. */
export function selectPlaces(reader: SqlReader, node: string): Promise<readonly CopyPlace[]> {
  return reader.map(
    'SELECT copy_id, dataset, version, state, origin, path FROM copies WHERE node = ?',
    [node],
    toPlace,
  )
}

function toPlace(row: SqlRow): CopyPlace {
  return {
    copyId: String(row.copy_id),
    dataset: String(row.dataset),
    version: row.version === null ? null : String(row.version),
    state: String(row.state) as CopyState,
    origin: String(row.origin) as CopyOrigin,
    path: String(row.path),
  }
}
