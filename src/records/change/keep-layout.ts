import type { Copy } from '../../model/copy.js'
import type { StripeMove } from '../contract/record-requests.js'
import { toCopy } from '../database/row-mapping.js'
import type { SqlTransaction } from '../database/sql-database.js'

/**
 * Records the layout of a stripe that is going away. If it is the last one of its layout, the whole copies that stand
 * for the other stripes remember the layout from then on.
 */
export async function keepLayout(transaction: SqlTransaction, gone: Copy): Promise<void> {
  const { copyId, dataset, version, stripe } = gone
  if (!stripe || version === null) return
  const others = await findVersion(transaction, { dataset, version })
  const isTold = others.some(
    (copy) => copy.copyId !== copyId && copy.stripe && isSameList(copy.stripe.nodes, stripe.nodes),
  )
  if (isTold) return
  for (const copy of others) {
    const { layouts = [] } = copy
    if (copy.stripe || copy.node === gone.node || !stripe.nodes.includes(copy.node)) continue
    if (!layouts.some((nodes) => isSameList(nodes, stripe.nodes)))
      writeLayouts(transaction, copy, [...layouts, stripe.nodes])
  }
}

/** Writes the new node list into the whole copies that remember the old one. */
export async function changeKeptLayouts(
  transaction: SqlTransaction,
  move: Omit<StripeMove, 'reason'>,
): Promise<void> {
  for (const copy of await findVersion(transaction, move)) {
    const { layouts = [] } = copy
    if (!layouts.some((nodes) => isSameList(nodes, move.from))) continue
    const rest = layouts.filter((nodes) => !isSameList(nodes, move.from) && !isSameList(nodes, move.to))
    writeLayouts(transaction, copy, [...rest, move.to])
  }
}

/** Records the layouts in which a whole copy stands for a stripe. */
export function writeLayouts(
  transaction: SqlTransaction,
  { copyId }: Pick<Copy, 'copyId'>,
  layouts: readonly (readonly string[])[],
): void {
  transaction.post('UPDATE copies SET layouts = ? WHERE copy_id = ?', [JSON.stringify(layouts), copyId])
}

async function findVersion(
  transaction: SqlTransaction,
  { dataset, version }: { readonly dataset: string; readonly version: string },
): Promise<readonly Copy[]> {
  const sql = `SELECT * FROM copies WHERE dataset = ? AND version = ? AND state = 'ready'`
  return (await transaction.all(sql, [dataset, version])).map(toCopy)
}

function isSameList(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((node, index) => node === b[index])
}
