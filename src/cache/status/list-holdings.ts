import type { CopyUse } from '../../model/copy.js'

/** Which nodes have a dataset, and in what state. */
export interface Holding {
  readonly dataset: string
  /** Ordered by node; a node stands once for each copy that it has. */
  readonly nodes: readonly {
    readonly node: string
    readonly state: CopyUse['state']
    /** Share of the bytes that are there, 0 to 1. */
    readonly fillRatio: number
    readonly referenceCount: number
  }[]
}

/** Puts copies together by dataset: who holds what. `copies` are ordered by dataset and node. */
export function listHoldings(copies: readonly CopyUse[]): readonly Holding[] {
  return [...Map.groupBy(copies, (copy) => copy.dataset)].map(([dataset, own]) => ({
    dataset,
    nodes: own.map(({ node, state, writtenBytes, contentBytes, referenceCount }) => ({
      node,
      state,
      fillRatio: state === 'ready' ? 1 : contentBytes > 0 ? Math.min(1, writtenBytes / contentBytes) : 0,
      referenceCount,
    })),
  }))
}
