import type { Copy } from '../../model/copy.js'
import type { StripeMove } from '../contract/record-requests.js'
import { stripeValue, toCopy } from '../database/row-mapping.js'
import { changeKeptLayouts } from './keep-layout.js'
import type { RecordWrite } from './record-write.js'
import { writeCopyEvent } from './write-event.js'

/** Writes the new node list into every stripe that stays in place. */
export async function changeStripeNodes(write: RecordWrite, move: StripeMove): Promise<readonly Copy[]> {
  const { transaction } = write
  const { dataset, version, from, to } = move
  const moved: Copy[] = []
  await changeKeptLayouts(transaction, move)
  for (const [index, node] of to.entries()) {
    if (from[index] !== node) continue
    const stripe = { index, nodes: to }
    const text = stripeValue(stripe)
    const row = await transaction.get(
      `SELECT * FROM copies WHERE dataset = ? AND node = ? AND version = ? AND stripe = ? AND state = 'ready'
        AND NOT EXISTS (SELECT 1 FROM copies other WHERE other.dataset = copies.dataset
          AND other.node = copies.node AND other.version = copies.version AND other.stripe = ?
          AND other.state = 'ready')`,
      [dataset, node, version, stripeValue({ index, nodes: from }), text],
    )
    if (!row) continue
    const copy = { ...toCopy(row), stripe }
    transaction.post('UPDATE copies SET stripe = ? WHERE copy_id = ?', [text, copy.copyId])
    writeCopyEvent(write, copy, { kind: 'repaired', task: null, reason: move.reason, detail: { stripe } })
    moved.push(copy)
  }
  return moved
}
