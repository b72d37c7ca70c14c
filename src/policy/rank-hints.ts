import type { CopyUse } from '../model/copy.js'

/** What of a job's datasets a node has. */
export interface NodeHint {
  readonly node: string
  readonly ready: readonly string[]
  readonly staging: readonly string[]
}

/** Nodes that have some of the datasets: most ready ones first, then most on their way, then by name. */
export function rankHints(datasets: readonly string[], copies: readonly CopyUse[]): readonly NodeHint[] {
  const nodes = new Set(copies.map(({ node }) => node))
  const having = (node: string, states: readonly string[]) =>
    datasets.filter((dataset) =>
      copies.some((copy) => copy.node === node && copy.dataset === dataset && states.includes(copy.state)),
    )
  return [...nodes]
    .map((node) => {
      const ready = having(node, ['ready'])
      const staging = having(node, ['reserved', 'staging']).filter((dataset) => !ready.includes(dataset))
      return { node, ready, staging }
    })
    .filter(({ ready, staging }) => ready.length + staging.length > 0)
    .sort(
      (a, b) =>
        b.ready.length - a.ready.length || b.staging.length - a.staging.length || (a.node < b.node ? -1 : 1),
    )
}
