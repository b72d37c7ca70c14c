import type { Copy } from '../model/copy.js'
import type { SqlReader, SqlRow } from './sql-database.js'

/** Where a copy lies, in few words: for whoever looks whether 100,000 of them are still there. */
export interface CopyPlace extends Pick<Copy, 'dataset' | 'path'> {
  /** Ready, staged by dsc, and read by no other node nor repaired. */
  readonly isPlain: boolean
}

/** Where the copies of a node lie. */
export function selectPlaces(reader: SqlReader, node: string): Promise<readonly CopyPlace[]> {
  return reader.map(
    `SELECT dataset, path, CASE WHEN state = 'ready' AND origin <> 'local' AND copy_id NOT IN
        (SELECT copy_id FROM leases WHERE purpose = 'transfer') THEN 1 ELSE 0 END AS plain
      FROM copies WHERE node = ?`,
    [node],
    toPlace,
  )
}

function toPlace({ dataset, path, plain }: SqlRow): CopyPlace {
  return { dataset: dataset as string, path: path as string, isPlain: plain === 1 }
}
