import type { CopyState } from '../../model/copy.js'
import type { CopySum } from '../../policy/copy-sums.js'
import type { CopyFilter } from '../contract/record-requests.js'
import { parseJson } from '../database/row-mapping.js'
import type { SqlReader, SqlRow } from '../database/sql-database.js'
import { copyConditions } from './select-copy-uses.js'
import { formatWhere } from './where.js'

/** Index `copies_by_standing` has these columns and all that is summed, in this order. */
const STANDING = 'node, parties, state, lock_state, has_source, is_striped'
const SUMS = `count(*) AS copies, sum(charged_bytes) AS charged_bytes, sum(charged_inodes) AS charged_inodes,
  sum(CASE WHEN charged_bytes > written_bytes THEN charged_bytes - written_bytes ELSE 0 END) AS unwritten_bytes`
const GROUP = 'node, state, parties, is_locked, has_source, is_striped, is_used, is_staged'

/**
 * Sums the matching copies at `nowMs`: the result of `sumUpCopies`, computed in the database. A million copies are read
 * from the index, in its order. Leases are few beside them: their copies are summed apart and moved to their own groups.
 */
export async function sumCopiesInRecord(
  reader: SqlReader,
  filter: Pick<CopyFilter, 'dataset' | 'node'>,
  nowMs: number,
): Promise<readonly CopySum[]> {
  const { where, parameters } = copyConditions(filter)
  const leases = formatWhere([
    ['(expires_at_ms IS NULL OR expires_at_ms > ?)', [nowMs]],
    ['node = ?', [filter.node]],
  ])
  const leased = copyConditions({ dataset: filter.dataset }) // begins with the leases, also on a node with many copies
  return reader.map(
    `WITH leased AS MATERIALIZED (
        SELECT copy_id, max(${flag("purpose <> 'stage'")}) AS is_used, max(${flag("purpose = 'stage'")}) AS is_staged
        FROM leases ${leases.where} GROUP BY copy_id),
      in_use AS MATERIALIZED (
        SELECT ${STANDING}, is_used, is_staged, ${SUMS}
        FROM leased JOIN copies USING (copy_id) ${leased.where} GROUP BY ${STANDING}, is_used, is_staged)
      SELECT ${GROUP}, sum(copies) AS copies, sum(charged_bytes) AS charged_bytes,
        sum(charged_inodes) AS charged_inodes, sum(unwritten_bytes) AS unwritten_bytes
      FROM (SELECT ${GROUP.replace('is_locked', `${flag('lock_state IS NOT NULL')} AS is_locked`)},
          copies, charged_bytes, charged_inodes, unwritten_bytes
        FROM (SELECT ${STANDING}, 0 AS is_used, 0 AS is_staged, ${SUMS} FROM copies ${where} GROUP BY ${STANDING}
          UNION ALL SELECT ${STANDING}, 0, 0, -copies, -charged_bytes, -charged_inodes, -unwritten_bytes FROM in_use
          UNION ALL SELECT * FROM in_use) AS parts) AS standing
      GROUP BY ${GROUP} HAVING sum(copies) > 0
      ORDER BY node, state`,
    [...leases.parameters, ...leased.parameters, ...parameters],
    toCopySum,
  )
}

/** Both engines have numbers, only one has booleans. */
function flag(condition: string): string {
  return `CASE WHEN ${condition} THEN 1 ELSE 0 END`
}

function toCopySum(row: SqlRow): CopySum {
  const parties = parseJson<readonly string[] | null>(row, 'parties')
  const number = (column: string) => Number(row[column])
  const isTrue = (column: string) => number(column) === 1
  return {
    node: String(row.node),
    state: String(row.state) as CopyState,
    isLocked: isTrue('is_locked'),
    hasSource: isTrue('has_source'),
    isUsed: isTrue('is_used'),
    isBeingStaged: isTrue('is_staged'),
    isStriped: isTrue('is_striped'),
    parties: parties ?? undefined,
    copies: number('copies'),
    chargedBytes: number('charged_bytes'),
    chargedInodes: number('charged_inodes'),
    unwrittenBytes: number('unwritten_bytes'),
  }
}
