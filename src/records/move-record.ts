import { setImmediate } from 'node:timers/promises'
import { DscError } from '../failure/dsc-error.js'
import { isLeaseLive } from '../model/lease.js'
import type { SqlDatabase, SqlReader, SqlRow, SqlTransaction, SqlValue } from './database/sql-database.js'
import { selectLeases } from './select/select-leases.js'

/** Tables of the record in an order that satisfies their references, each with its key and a value before all keys. */
const TABLES = [
  { table: 'datasets', key: 'name', start: '' },
  { table: 'nodes', key: 'node', start: '' },
  { table: 'copies', key: 'copy_id', start: '' },
  { table: 'leases', key: 'lease_id', start: '' },
  { table: 'events', key: 'sequence', start: 0 },
] as const
/** Columns that the engine fills. */
const GENERATED: readonly string[] = ['sequence', 'has_source', 'is_striped', 'source_url']

/** Rows to move at a time: a million copies take little memory, and few statements. */
export const PAGE_ROWS = 1000

/** Number of rows moved from each table. */
export type MovedRows = Readonly<Record<(typeof TABLES)[number]['table'], number>>

/**
 * Moves a whole record into an empty one of any engine, in one transaction. The old one is only read. Rejects with
 * COPY_IN_USE during a staging (its stager would keep writing to the old record), and with RECORD_NOT_EMPTY if the new
 * one already has copies or datasets.
 */
export async function moveRecord(from: SqlDatabase, to: SqlDatabase): Promise<MovedRows> {
  let moved: MovedRows | undefined
  return from.read(async (source) => {
    await requireNoStager(source, from)
    try {
      // An engine that loses its connection after everything is moved calls this again.
      moved ??= await to.write('durable', 'all', (target) => moveTables(source, target, to.location))
    } catch (error) {
      throw error instanceof OldRecordFailed ? error.cause : error
    }
    return moved
  })
}

/** Keeps a failure of the old record from the engine of the new one, which would explain or retry it as its own. */
class OldRecordFailed extends Error {}

async function moveTables(source: SqlReader, target: SqlTransaction, location: string): Promise<MovedRows> {
  await requireEmpty(target, location)
  const rows: [string, number][] = []
  for (const each of TABLES) rows.push([each.table, await moveTable(source, target, each)])
  return Object.fromEntries(rows) as MovedRows
}

async function requireNoStager(source: SqlReader, from: SqlDatabase): Promise<void> {
  const nowMs = from.nowMs()
  const stagers = await selectLeases(source, { purpose: 'stage' })
  const live = stagers.find((stager) => isLeaseLive(stager, nowMs))
  if (live === undefined) return
  throw new DscError(
    'COPY_IN_USE',
    `${live.dataset} is being staged on node ${live.node} by ${live.task}, which writes into ${from.location}`,
    { hint: 'wait until it ends (dsc status), then migrate again' },
  )
}

async function requireEmpty(target: SqlTransaction, location: string): Promise<void> {
  for (const { table } of TABLES) {
    if ((await target.get(`SELECT 1 AS found FROM ${table} LIMIT 1`)) === undefined) continue
    throw new DscError('RECORD_NOT_EMPTY', `the record ${location} has ${table} already`, {
      hint: 'migrate into an empty database; nothing was changed',
    })
  }
}

/** Moves a table page by page, and reads the next one while the last is written; returns the number of its rows. */
async function moveTable(
  source: SqlReader,
  target: SqlTransaction,
  { table, key, start }: (typeof TABLES)[number],
): Promise<number> {
  const sql = `SELECT * FROM ${table} WHERE ${key} > ? ORDER BY ${key} LIMIT ${PAGE_ROWS}`
  const readAfter = (after: SqlValue): Promise<readonly SqlRow[]> =>
    source.all(sql, [after]).catch((cause: unknown) => {
      throw new OldRecordFailed('the old record cannot be read', { cause })
    })
  let rows = 0
  for (let page = await readAfter(start); page.length > 0; ) {
    const inserted = insertRows(target, table, page)
    inserted.catch(() => {}) // awaited after the next page
    await setImmediate() // sends it: a read of SQLite stops the event loop
    rows += page.length
    page = await readAfter(page.at(-1)![key]!)
    await inserted
  }
  return rows
}

async function insertRows(target: SqlTransaction, table: string, page: readonly SqlRow[]): Promise<void> {
  const columns = Object.keys(page[0]!).filter((column) => !GENERATED.includes(column))
  const places = `(${columns.map(() => '?').join(', ')})`
  await target.run(
    `INSERT INTO ${table} (${columns.join(', ')}) VALUES ${page.map(() => places).join(', ')}`,
    page.flatMap((row) => columns.map((column) => row[column]!)),
  )
}
