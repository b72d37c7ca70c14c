import { DscError } from '../../failure/dsc-error.js'
import { findClosest } from '../../model/find-closest.js'
import { formatNames } from '../../model/format-names.js'
import type { Surroundings } from '../surroundings.js'

/** Rejects with USAGE, and names the known nodes, unless `node` is this one or the record knows it. */
export async function requireKnownNode(context: Surroundings, node: string, command: string): Promise<void> {
  const { node: ownNode } = await context.config()
  if (node === ownNode) return
  const record = await context.openRecord()
  const known = new Set([ownNode, ...(await record.listNodes()).map((entry) => entry.node)])
  if (known.has(node)) return
  // The record may have forgotten the node, or never have heard from it, and still have copies or events of it.
  if ((await record.listCopies({ node }, context.nowMs())).length > 0) return
  if ((await record.listEvents({ node, limit: 1 })).length > 0) return
  const names = [...known].toSorted()
  throw new DscError('USAGE', `the record knows no node ${node}; it knows ${formatNames(names, 10)}`, {
    hint: `${command} --node ${findClosest(node, names) ?? ownNode}`,
  })
}
