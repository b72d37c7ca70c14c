import type { CopyFilter } from '../contract/record-requests.js'
import type { NewestDatasets } from '../contract/record-store.js'
import type { SqlReader } from '../database/sql-database.js'
import { copyConditions } from './select-copy-uses.js'

/** Copies to read for each dataset that is asked for: at first, and if these are of too few datasets. */
const COPIES_PER_DATASET = [32, 1024]

/**
 * The most recently used datasets of the matching copies; at most `limit`. Those of all nodes are
 * found among the copies that were used last, without a look at all.
 */
export async function selectNewestDatasets(
  reader: SqlReader,
  filter: Pick<CopyFilter, 'dataset' | 'node'>,
  limit: number,
  copiesPerDataset: readonly number[] = COPIES_PER_DATASET,
): Promise<NewestDatasets> {
  const { where, parameters } = copyConditions(filter)
  const [counted] = await reader.all(
    `SELECT count(*) AS datasets FROM (SELECT 1 FROM copies ${where} GROUP BY dataset) AS datasets`,
    parameters,
  )
  const total = Number(counted!.datasets)
  const attempts = where === '' && total > limit ? copiesPerDataset : []
  for (const copies of attempts) {
    const names = await selectAmongLast(reader, copies * limit, limit)
    if (names.length === limit) return { names, total }
  }
  const rows = await reader.all(
    `SELECT dataset, max(last_used_at_ms) AS last_used_at_ms FROM copies ${where}
      GROUP BY dataset ORDER BY last_used_at_ms DESC, dataset LIMIT ?`,
    [...parameters, limit],
  )
  return { names: rows.map(({ dataset }) => String(dataset)), total }
}

/** Datasets of the `most` copies used last, without those of the earliest time: others of that time are not read. */
async function selectAmongLast(reader: SqlReader, most: number, limit: number): Promise<readonly string[]> {
  const rows = await reader.all(
    `WITH newest AS MATERIALIZED (
        SELECT dataset, last_used_at_ms FROM copies ORDER BY last_used_at_ms DESC LIMIT ?)
      SELECT dataset, max(last_used_at_ms) AS last_used_at_ms FROM newest
      WHERE last_used_at_ms > (SELECT min(last_used_at_ms) FROM newest)
      GROUP BY dataset ORDER BY last_used_at_ms DESC, dataset LIMIT ?`,
    [most, limit],
  )
  return rows.map(({ dataset }) => String(dataset))
}
