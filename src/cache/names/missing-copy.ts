import { DscError } from '../../failure/dsc-error.js'
import { formatNames } from '../../model/format-names.js'
import type { RecordStore } from '../../records/contract/record-store.js'

/**
 * The failure when a node lacks the copy of a dataset that was asked for. Says which other nodes have one, or what
 * state the node's own copy is in if only a ready one will do. `otherwise` is the hint if no node has one.
 */
export async function missingCopy(
  record: RecordStore,
  { dataset, node }: { readonly dataset: string; readonly node: string },
  hints: { readonly command: string; readonly otherwise: string },
): Promise<DscError> {
  const copies = await record.listCopies({ dataset }, record.nowMs())
  const own = copies.find((copy) => copy.node === node)
  if (own) {
    return new DscError('COPY_NOT_FOUND', `the copy of ${dataset} on node ${node} is ${own.state}`, {
      hint: `dsc status --dataset ${dataset}`,
    })
  }
  const ready = copies.filter(({ state }) => state === 'ready')
  const nodes = [...new Set(ready.map((copy) => copy.node))]
  if (nodes.length === 0) {
    return new DscError(
      'COPY_NOT_FOUND',
      `${dataset} has no copy on node ${node}, and no other node has a ready one`,
      { hint: hints.otherwise },
    )
  }
  return new DscError(
    'COPY_NOT_FOUND',
    `${dataset} has no copy on node ${node}, but on ${formatNames(nodes, 5)}`,
    { hint: `${hints.command} ${dataset} on ${nodes[0]}` },
  )
}
