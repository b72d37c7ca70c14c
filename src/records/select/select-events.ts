import type { RecordEvent } from '../../model/record-event.js'
import type { EventFilter } from '../contract/record-requests.js'
import { toEvent } from '../database/row-mapping.js'
import type { SqlReader, SqlValue } from '../database/sql-database.js'

/**
 * Ends the walk from the newest event down at the first that is young enough: without it, an engine that finds fewer
 * than the limit reads all ten million. Nodes' clocks differ, so the lowest sequence is sought among all young events,
 * in the index on their times; `+ 0` keeps both engines from seeking it along the sequence. Later pages go without it,
 * because it would read that index once a page.
 */
const NOT_OLDER = 'sequence >= (SELECT min(sequence + 0) FROM events WHERE at_ms >= ?)'

/** Matching lines of the history, newest first. */
export async function selectEvents(reader: SqlReader, filter: EventFilter): Promise<readonly RecordEvent[]> {
  const given: [string, readonly SqlValue[]][] = []
  if (filter.dataset !== undefined) given.push(['dataset = ?', [filter.dataset]])
  if (filter.node !== undefined) given.push(['node = ?', [filter.node]])
  if (filter.copyId !== undefined) given.push(['copy_id = ?', [filter.copyId]])
  if (filter.task !== undefined) given.push(['task = ?', [filter.task]])
  if (filter.sinceMs !== undefined) given.push(['at_ms >= ?', [filter.sinceMs]])
  if (filter.sinceMs !== undefined && filter.before === undefined) given.push([NOT_OLDER, [filter.sinceMs]])
  if (filter.failureId !== undefined) given.push(['failure_id = ?', [filter.failureId]])
  if (filter.before !== undefined) given.push(['sequence < ?', [filter.before]])
  if (filter.kinds !== undefined)
    given.push([`kind IN (${filter.kinds.map(() => '?').join(', ')})`, filter.kinds])
  else given.push(["kind <> 'fed'", []])
  const where = given.length > 0 ? `WHERE ${given.map(([condition]) => condition).join(' AND ')}` : ''
  return reader.map(
    `SELECT * FROM events ${where} ORDER BY sequence DESC LIMIT ?`,
    [...given.flatMap(([, values]) => values), filter.limit],
    toEvent,
  )
}
