import { DscError } from '../failure/dsc-error.js'
import { isLeaseLive } from '../model/lease.js'
import type { SqlDatabase, SqlRow } from './database/sql-database.js'
import { selectCopyUses } from './select/select-copy-uses.js'
import { selectLeases } from './select/select-leases.js'

/** Tables of the record in an order that satisfies their references. */
const TABLES = [
  { table: 'datasets', key: 'name' },
  { table: 'nodes', key: 'node' },
  { table: 'copies', key: 'copy_id' },
  { table: 'leases', key: 'lease_id' },
  { table: 'events', key: 'sequence' },
] as const
/** Columns that the engine fills. */
const GENERATED: readonly string[] = ['sequence', 'has_source', 'is_striped']

/** Number of rows moved from each table. */
export type MovedRows = Readonly<Record<(typeof TABLES)[number]['table'], number>>

/**
 * Moves a whole record into an empty one of any engine, in one transaction. The old one is only read. Rejects with
 * COPY_IN_USE during a staging (its stager would keep writing to the old record), and with RECORD_NOT_EMPTY if the new
 * one already has copies or datasets.
 */
export async function moveRecord(from: SqlDatabase, to: SqlDatabase): Promise<MovedRows> {
  const tables = await from.read(async (transaction) => {
    const nowMs = from.nowMs()
    const stagers = (await selectLeases(transaction, {})).filter(({ purpose }) => purpose === 'stage')
    const copies = await selectCopyUses(transaction, {}, nowMs)
    for (const lease of stagers.filter((stager) => isLeaseLive(stager, nowMs))) {
      const copy = copies.find(({ copyId }) => copyId === lease.copyId)
      throw new DscError(
        'COPY_IN_USE',
        `${copy?.dataset} is being staged on node ${copy?.node} by ${lease.task}, which writes into ${from.location}`,
        { hint: 'wait until it ends (dsc status), then migrate again' },
      )
    }
    const rows: SqlRow[][] = []
    for (const { table, key } of TABLES) {
      rows.push([...(await transaction.all(`SELECT * FROM ${table} ORDER BY ${key}`))])
    }
    return rows
  })
  await to.write('durable', 'all', async (transaction) => {
    for (const { table } of TABLES) {
      if ((await transaction.get(`SELECT 1 AS found FROM ${table} LIMIT 1`)) === undefined) continue
      throw new DscError('RECORD_NOT_EMPTY', `the record ${to.location} has ${table} already`, {
        hint: 'migrate into an empty database; nothing was changed',
      })
    }
    for (const [index, { table }] of TABLES.entries()) {
      for (const row of tables[index]!) {
        const columns = Object.keys(row).filter((column) => !GENERATED.includes(column))
        await transaction.run(
          `INSERT INTO ${table} (${columns.join(', ')}) VALUES (${columns.map(() => '?').join(', ')})`,
          columns.map((column) => row[column]!),
        )
      }
    }
  })
  return Object.fromEntries(
    TABLES.map(({ table }, index) => [table, tables[index]!.length]),
  ) as unknown as MovedRows
}
