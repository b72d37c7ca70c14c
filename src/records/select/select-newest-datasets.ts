import type { CopyFilter } from '../contract/record-requests.js'
import type { NewestDatasets } from '../contract/record-store.js'
import type { SqlReader } from '../database/sql-database.js'
import { copyConditions } from './select-copy-uses.js'

/** The most recently used datasets of the matching copies; at most `limit`. */
export async function selectNewestDatasets(
  reader: SqlReader,
  filter: Pick<CopyFilter, 'dataset' | 'node'>,
  limit: number,
): Promise<NewestDatasets> {
  const { where, parameters } = copyConditions(filter)
  const rows = await reader.all(
    `SELECT dataset, max(last_used_at_ms) AS last_used_at_ms, count(*) OVER () AS datasets
      FROM copies ${where} GROUP BY dataset ORDER BY last_used_at_ms DESC, dataset LIMIT ?`,
    [...parameters, limit],
  )
  return { names: rows.map(({ dataset }) => String(dataset)), total: Number(rows[0]?.datasets ?? 0) }
}
