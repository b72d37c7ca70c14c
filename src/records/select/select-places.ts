import type { CopyPlace } from '../contract/record-store.js'
import type { SqlReader, SqlRow } from '../database/sql-database.js'

/** Places of a node's copies. */
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
