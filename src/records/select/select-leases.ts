import type { PlacedLease } from '../../model/lease.js'
import type { LeaseFilter } from '../contract/record-requests.js'
import { toLease } from '../database/row-mapping.js'
import type { SqlReader, SqlRow, SqlValue } from '../database/sql-database.js'
import { formatWhere } from './where.js'

/** Leases with the dataset of their copy. */
export const SELECT_LEASES =
  'SELECT leases.*, copies.dataset FROM leases JOIN copies ON copies.copy_id = leases.copy_id'

/** Matching leases, oldest first. */
export async function selectLeases(reader: SqlReader, filter: LeaseFilter): Promise<readonly PlacedLease[]> {
  const { sql, parameters } = leaseQuery(filter)
  return reader.map(sql, parameters, (row) => ({
    ...toLease(row),
    dataset: String(row.dataset),
    node: String(row.node),
  }))
}

/** Rows of the matching leases, oldest first. */
export async function selectLeaseRows(reader: SqlReader, filter: LeaseFilter): Promise<readonly SqlRow[]> {
  const { sql, parameters } = leaseQuery(filter)
  return reader.all(sql, parameters)
}

function leaseQuery(filter: LeaseFilter): { readonly sql: string; readonly parameters: readonly SqlValue[] } {
  const { after, limit } = filter
  const { where, parameters } = formatWhere([
    ['copies.dataset = ?', [filter.dataset]],
    // A node has few copies of a dataset, and may have many leases: begin with the copies where there is a dataset.
    [`${filter.dataset === undefined ? 'leases' : 'copies'}.node = ?`, [filter.node]],
    ['leases.copy_id = ?', [filter.copyId]],
    ['leases.purpose = ?', [filter.purpose]],
    ['leases.task = ?', [filter.task]],
    ['leases.lease_id = ?', [filter.leaseId]],
    [`(leases.holder NOT LIKE '{"kind":"ttl"%' OR leases.expires_at_ms <= ?)`, [filter.mayBeOverAtMs]],
    ['(leases.created_at_ms, leases.lease_id) > (?, ?)', [after?.createdAtMs, after?.leaseId]],
  ])
  return {
    sql: `${SELECT_LEASES} ${where} ORDER BY leases.created_at_ms, leases.lease_id${limit === undefined ? '' : ' LIMIT ?'}`,
    parameters: [...parameters, ...(limit === undefined ? [] : [limit])],
  }
}
