import type { CopyUse } from '../model/copy.js'

/** The part of a job's datasets that a node has. */
export interface NodeHint {
  readonly node: string
  /** Datasets of which it has something: whole copies, or stripes. */
  readonly ready: readonly string[]
  readonly staging: readonly string[]
  /** Total number of datasets, a stripe of 4 counting as 0.25. */
  readonly readyShare: number
  readonly stagingShare: number
}

/** Nodes that have some of the datasets: ordered by most ready, then most being downloaded, then by name. */
export function rankHints(datasets: readonly string[], copies: readonly CopyUse[]): readonly NodeHint[] {
  const byNode = Map.groupBy(copies, ({ node }) => node)
  return [...byNode]
    .map(([node, own]) => describeNode(node, own, datasets))
    .filter(({ ready, staging }) => ready.length + staging.length > 0)
    .sort(
      (a, b) => b.readyShare - a.readyShare || b.stagingShare - a.stagingShare || (a.node < b.node ? -1 : 1),
    )
}

/** The nodes that have most of the datasets, if any has something. */
export function findBestNodes(hints: readonly NodeHint[]): readonly string[] {
  const best = hints.filter(({ readyShare }) => readyShare === hints[0]?.readyShare && readyShare > 0)
  return best.map(({ node }) => node)
}

function describeNode(node: string, copies: readonly CopyUse[], datasets: readonly string[]): NodeHint {
  const shareOf = (dataset: string, states: readonly string[]) =>
    findShare(copies.filter((copy) => copy.dataset === dataset && states.includes(copy.state)))
  const shares = datasets.map((dataset) => {
    const ready = shareOf(dataset, ['ready'])
    return { dataset, ready, staging: Math.min(1 - ready, shareOf(dataset, ['reserved', 'staging'])) }
  })
  return {
    node,
    ready: shares.filter(({ ready }) => ready > 0).map(({ dataset }) => dataset),
    staging: shares.filter(({ ready, staging }) => ready === 0 && staging > 0).map(({ dataset }) => dataset),
    readyShare: shares.reduce((sum, { ready }) => sum + ready, 0),
    stagingShare: shares.reduce((sum, { staging }) => sum + staging, 0),
  }
}

/** The fraction of its dataset that a node has in these copies, 0 to 1: of its most complete version. */
function findShare(copies: readonly CopyUse[]): number {
  const versions = Map.groupBy(copies, ({ version, stripe }) =>
    JSON.stringify([version, stripe?.nodes.length]),
  )
  const shares = [...versions.values()].map((same) => {
    const [{ stripe }] = same as [CopyUse]
    return stripe ? new Set(same.map((copy) => copy.stripe!.index)).size / stripe.nodes.length : 1
  })
  return Math.max(0, ...shares)
}
