import type { CopyUse } from '../../model/copy.js'

/** The nodes that have a dataset, and the state of each copy. */
export interface Holding {
  readonly dataset: string
  /** Ordered by node; a node appears once for each of its copies. */
  readonly nodes: readonly {
    readonly node: string
    readonly state: CopyUse['state']
    /** Fraction of the bytes that are there, 0 to 1. */
    readonly fillRatio: number
    readonly referenceCount: number
  }[]
}

/** Groups copies by dataset. `copies` must be ordered by dataset and node. */
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
