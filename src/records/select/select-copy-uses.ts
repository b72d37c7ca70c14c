import type { CopyUse } from '../../model/copy.js'
import type { CopyFilter } from '../contract/record-requests.js'
import { COPY_USE_COLUMNS, createCopyUseReader } from '../database/row-mapping.js'
import type { SqlReader } from '../database/sql-database.js'
import { formatWhere, isOneOf } from './where.js'

interface OneOfSeveral {
  /** Only copies of datasets of which `node` has several. */
  readonly isOneOfSeveral?: true
}

/** Matching copies, with their uses at `nowMs`, ordered by dataset, node, creation. */
export async function selectCopyUses(
  reader: SqlReader,
  filter: CopyFilter & OneOfSeveral,
  nowMs: number,
): Promise<readonly CopyUse[]> {
  const { where, parameters } = copyConditions(filter)
  const { limit, isNewestFirst } = filter
  const order = `${isNewestFirst ? 'ready_at_ms DESC, ' : ''}dataset, node, created_at_ms, copy_id`
  return reader.map(
    `SELECT ${COPY_USE_COLUMNS} FROM copies ${where} ORDER BY ${order}${limit === undefined ? '' : ' LIMIT ?'}`,
    [nowMs, nowMs, ...parameters, ...(limit === undefined ? [] : [limit])],
    createCopyUseReader(),
  )
}

/** The WHERE clause of a copy filter, with its parameters. */
export function copyConditions(filter: CopyFilter & OneOfSeveral): ReturnType<typeof formatWhere> {
  const { after } = filter
  return formatWhere([
    ['dataset = ?', [filter.dataset]],
    ['node = ?', [filter.node]],
    [
      'dataset IN (SELECT dataset FROM copies WHERE node = ? GROUP BY dataset HAVING count(*) > 1)',
      [filter.isOneOfSeveral && filter.node],
    ],
    ['copy_id = ?', [filter.copyId]],
    ['source_url = ?', [filter.sourceUrl]],
    ["source_url >= 'hf:' AND source_url < 'hf;'", filter.isOfHub ? [] : [undefined]],
    [
      '(dataset, node, created_at_ms, copy_id) > (?, ?, ?, ?)',
      [after?.dataset, after?.node, after?.createdAtMs, after?.copyId],
    ],
    isOneOf('state', filter.states),
    // Engines use an index on some rows only if a query has its condition word for word.
    ["state <> 'ready'", filter.states?.includes('ready') === false ? [] : [undefined]],
    isOneOf('dataset', filter.datasets),
    ['is_striped = 1', filter.isStriped ? [] : [undefined]],
  ])
}
