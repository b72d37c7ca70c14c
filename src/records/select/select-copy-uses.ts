import type { CopyUse } from '../../model/copy.js'
import type { CopyFilter } from '../contract/record-requests.js'
import { COPY_USE_COLUMNS, createCopyUseReader } from '../database/row-mapping.js'
import type { SqlReader, SqlValue } from '../database/sql-database.js'

interface SameNode {
  /** Only copies on the node of this copy. */
  readonly sameNodeAs?: string
}

/** Matching copies, with their uses at `nowMs`, ordered by dataset, node, creation. */
export async function selectCopyUses(
  reader: SqlReader,
  filter: CopyFilter & SameNode,
  nowMs: number,
): Promise<readonly CopyUse[]> {
  const { where, parameters } = copyConditions(filter)
  const { limit } = filter
  return reader.map(
    `SELECT ${COPY_USE_COLUMNS} FROM copies ${where} ORDER BY dataset, node, created_at_ms, copy_id${limit === undefined ? '' : ' LIMIT ?'}`,
    [nowMs, nowMs, ...parameters, ...(limit === undefined ? [] : [limit])],
    createCopyUseReader(),
  )
}

/** The WHERE clause of a copy filter, with its parameters. */
export function copyConditions(filter: CopyFilter & SameNode): {
  where: string
  parameters: readonly SqlValue[]
} {
  const given: [string, readonly SqlValue[]][] = []
  if (filter.dataset !== undefined) given.push(['dataset = ?', [filter.dataset]])
  if (filter.node !== undefined) given.push(['node = ?', [filter.node]])
  if (filter.sameNodeAs !== undefined)
    given.push(['node = (SELECT node FROM copies WHERE copy_id = ?)', [filter.sameNodeAs]])
  if (filter.copyId !== undefined) given.push(['copy_id = ?', [filter.copyId]])
  if (filter.after !== undefined) {
    const { dataset, node, createdAtMs, copyId } = filter.after
    given.push([
      '(dataset, node, created_at_ms, copy_id) > (?, ?, ?, ?)',
      [dataset, node, createdAtMs, copyId],
    ])
  }
  if (filter.states !== undefined)
    given.push([`state IN (${filter.states.map(() => '?').join(', ')})`, filter.states])
  if (filter.datasets !== undefined)
    given.push([`dataset IN (${filter.datasets.map(() => '?').join(', ') || 'NULL'})`, filter.datasets])
  if (filter.isStriped) given.push(['is_striped = 1', []])
  return {
    where: given.length > 0 ? `WHERE ${given.map(([condition]) => condition).join(' AND ')}` : '',
    parameters: given.flatMap(([, values]) => values),
  }
}
