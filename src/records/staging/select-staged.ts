import type { Copy } from '../../model/copy.js'
import { toCopy } from '../database/row-mapping.js'
import type { SqlTransaction } from '../database/sql-database.js'

/** A copy that is being staged, and the task that stages it: others may have asked for it since. */
type StagedCopy = Copy & { readonly stagerTask: string }

/** The copy, if it is still being staged under this stage lease. */
export async function selectStaged(
  transaction: SqlTransaction,
  stage: { readonly copyId: string; readonly stageLeaseId: string },
): Promise<StagedCopy | undefined> {
  const row = await transaction.get(
    `SELECT copies.*, leases.task AS stager_task FROM copies JOIN leases ON leases.copy_id = copies.copy_id
      WHERE copies.copy_id = ? AND leases.lease_id = ? AND copies.state IN ('reserved', 'staging')`,
    [stage.copyId, stage.stageLeaseId],
  )
  return row && { ...toCopy(row), stagerTask: String(row.stager_task) }
}
