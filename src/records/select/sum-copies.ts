import type { CopyState } from '../../model/copy.js'
import type { CopySum } from '../../policy/copy-sums.js'
import type { CopyFilter } from '../contract/record-requests.js'
import { parseJson } from '../database/row-mapping.js'
import type { SqlReader, SqlRow } from '../database/sql-database.js'
import { copyConditions } from './select-copy-uses.js'

const LIVE = '(expires_at_ms IS NULL OR expires_at_ms > ?)'
const UNWRITTEN = 'CASE WHEN charged_bytes > written_bytes THEN charged_bytes - written_bytes ELSE 0 END'

/** Sums the matching copies at `nowMs`: the result of `sumUpCopies`, computed in the database. */
export async function sumCopiesInRecord(
  reader: SqlReader,
  filter: Pick<CopyFilter, 'dataset' | 'node'>,
  nowMs: number,
): Promise<readonly CopySum[]> {
  const { where, parameters } = copyConditions(filter)
  // Leases are few beside copies: gather them once instead of looking them up for each copy.
  return reader.map(
    `SELECT node, state, parties, is_locked, has_source, is_striped, is_used, is_staged, count(*) AS copies,
      sum(charged_bytes) AS charged_bytes, sum(charged_inodes) AS charged_inodes, sum(unwritten_bytes) AS unwritten_bytes
      FROM (SELECT node, state, parties, charged_bytes, charged_inodes, ${UNWRITTEN} AS unwritten_bytes,
        ${flag('lock_state IS NOT NULL')} AS is_locked,
        ${flag('source IS NOT NULL')} AS has_source,
        ${flag('stripe IS NOT NULL OR layouts IS NOT NULL')} AS is_striped,
        ${flag(`copy_id IN (SELECT copy_id FROM leases WHERE purpose <> 'stage' AND ${LIVE})`)} AS is_used,
        ${flag(`copy_id IN (SELECT copy_id FROM leases WHERE purpose = 'stage' AND ${LIVE})`)} AS is_staged
        FROM copies ${where}) AS standing
      GROUP BY node, state, parties, is_locked, has_source, is_striped, is_used, is_staged
      ORDER BY node, state`,
    [nowMs, nowMs, ...parameters],
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
