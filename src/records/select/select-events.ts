import type { RecordEvent } from '../../model/record-event.js'
import type { EventFilter } from '../contract/record-requests.js'
import { toEvent } from '../database/row-mapping.js'
import type { SqlReader } from '../database/sql-database.js'
import { formatWhere, isOneOf } from './where.js'

/**
 * Ends the walk from the newest event down at the first that is young enough: without it, an engine that finds fewer
 * than the limit reads all ten million. Nodes' clocks differ, so the lowest sequence is sought among all young events,
 * in the index on their times; `+ 0` keeps both engines from seeking it along the sequence. Later pages go without it,
 * because it would read that index once a page.
 */
const NOT_OLDER = 'sequence >= (SELECT min(sequence + 0) FROM events WHERE at_ms >= ?)'

/** Matching lines of the history, newest first. */
export async function selectEvents(reader: SqlReader, filter: EventFilter): Promise<readonly RecordEvent[]> {
  const { sinceMs, before, kinds } = filter
  const { where, parameters } = formatWhere([
    ['dataset = ?', [filter.dataset]],
    ['node = ?', [filter.node]],
    ['copy_id = ?', [filter.copyId]],
    ['task = ?', [filter.task]],
    ['at_ms >= ?', [sinceMs]],
    [NOT_OLDER, [before === undefined ? sinceMs : undefined]],
    ['failure_id = ?', [filter.failureId]],
    ['sequence < ?', [before]],
    kinds ? isOneOf('kind', kinds) : ["kind <> 'fed'", []],
  ])
  return reader.map(
    `SELECT * FROM events ${where} ORDER BY sequence DESC LIMIT ?`,
    [...parameters, filter.limit],
    toEvent,
  )
}
