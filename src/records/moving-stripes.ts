import type { Copy } from '../model/copy.js'
import { writeEvent } from './event-writing.js'
import type { StripeMove } from './record-store.js'
import { formatStripe, toCopy } from './row-mapping.js'
import type { SqlTransaction } from './sql-database.js'

/** Writes the new list of nodes into every stripe that stays where it is. */
export async function changeStripeNodes(
  transaction: SqlTransaction,
  move: StripeMove,
  nowMs: number,
): Promise<readonly Copy[]> {
  const { dataset, version, from, to } = move
  const moved: Copy[] = []
  for (const [index, node] of to.entries()) {
    if (from[index] !== node) continue
    const stripe = { index, nodes: to }
    const text = formatStripe(stripe)
    const row = await transaction.get(
      `SELECT * FROM copies WHERE dataset = ? AND node = ? AND version = ? AND stripe = ? AND state = 'ready'
        AND NOT EXISTS (SELECT 1 FROM copies other WHERE other.dataset = copies.dataset
          AND other.node = copies.node AND other.version = copies.version AND other.stripe = ?
          AND other.state = 'ready')`,
      [dataset, node, version, formatStripe({ index, nodes: from }), text],
    )
    if (!row) continue
    const copy = { ...toCopy(row), stripe }
    transaction.post('UPDATE copies SET stripe = ? WHERE copy_id = ?', [text, copy.copyId])
    writeEvent(transaction, {
      atMs: nowMs,
      kind: 'repaired',
      ...{ node, dataset, copyId: copy.copyId, task: null, reason: move.reason, detail: { stripe } },
    })
    moved.push(copy)
  }
  return moved
}
