import type { CopyUse } from '../model/copy.js'
import { findCandidates } from '../policy/plan-eviction.js'
import type { OrderRequest } from '../records/contract/record-requests.js'

/** The order of eviction that `RecordStore.foreseeOrder` finds, from all copies of a node. */
export function orderAll(copiesOfNode: readonly CopyUse[], { dataset, limit }: OrderRequest) {
  const all = findCandidates(copiesOfNode).map(({ copy, reason }, index) => ({
    copy,
    reason,
    rank: index + 1,
  }))
  return {
    first: all.slice(0, limit).map(({ copy, reason }) => ({ copy, reason })),
    ranks: all
      .filter(({ copy }) => copy.dataset === dataset)
      .map(({ copy: { copyId }, reason, rank }) => ({ copyId, rank, candidates: all.length, reason })),
  }
}
