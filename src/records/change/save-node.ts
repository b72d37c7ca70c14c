import { DscError } from '../../failure/dsc-error.js'
import type { Copy } from '../../model/copy.js'
import type { NodeEntry } from '../../model/node.js'
import { stripeValue, toCopy, toNode } from '../database/row-mapping.js'
import type { SqlTransaction } from '../database/sql-database.js'
import { writeLayouts } from './keep-layout.js'

/** See `RecordStore.saveNode`. */
export async function upsertNode(transaction: SqlTransaction, node: NodeEntry): Promise<NodeEntry> {
  const [row] = await transaction.all(
    `INSERT INTO nodes (node, cache_root, policy, disk, seen_at_ms, agent, identity) VALUES (?, ?, ?, ?, ?, ?, ?)
      ON CONFLICT (node) DO UPDATE SET cache_root = excluded.cache_root, policy = excluded.policy,
        disk = excluded.disk, seen_at_ms = excluded.seen_at_ms, agent = coalesce(excluded.agent, nodes.agent),
        identity = coalesce(nodes.identity, excluded.identity)
      RETURNING *`,
    [
      node.node,
      node.cacheRoot,
      JSON.stringify(node.policy),
      JSON.stringify(node.disk),
      node.seenAtMs,
      node.agent === undefined ? null : JSON.stringify(node.agent),
      node.identity === undefined ? null : JSON.stringify(node.identity),
    ],
  )
  return toNode(row!)
}

/** See `RecordStore.renameNode`. */
export async function renameNode(
  transaction: SqlTransaction,
  { from, to }: { readonly from: string; readonly to: string },
): Promise<readonly Copy[]> {
  const taken = await transaction.all(
    'SELECT node FROM nodes WHERE node = ? UNION SELECT node FROM copies WHERE node = ?',
    [to, to],
  )
  if (taken.length > 0) {
    throw new DscError('NODE_TAKEN', `there is a node ${to} already`, {
      hint: `choose another name, or forget it first: dsc record forget-node ${to}`,
    })
  }
  transaction.post('UPDATE nodes SET node = ? WHERE node = ?', [to, from])
  transaction.post('UPDATE copies SET node = ? WHERE node = ?', [to, from])
  transaction.post('UPDATE leases SET node = ? WHERE node = ?', [to, from])
  const sql = 'SELECT * FROM copies WHERE stripe IS NOT NULL OR layouts IS NOT NULL'
  const rename = (nodes: readonly string[]) => nodes.map((node) => (node === from ? to : node))
  for (const copy of (await transaction.all(sql)).map(toCopy)) {
    const { stripe, layouts } = copy
    if (stripe?.nodes.includes(from)) {
      const text = stripeValue({ index: stripe.index, nodes: rename(stripe.nodes) })
      transaction.post('UPDATE copies SET stripe = ? WHERE copy_id = ?', [text, copy.copyId])
    }
    if (layouts?.some((nodes) => nodes.includes(from))) writeLayouts(transaction, copy, layouts.map(rename))
  }
  return (await transaction.all('SELECT * FROM copies WHERE node = ?', [to])).map(toCopy)
}
