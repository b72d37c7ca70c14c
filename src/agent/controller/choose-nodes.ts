import type { CopyUse } from '../../model/copy.js'
import { rankHints } from '../../policy/rank-hints.js'
import type { NodeObject } from './cluster-objects.js'
import type { PodSpec, Quantities } from './pod-needs.js'
import { countFits, suitsNode } from './suits-node.js'

/** Equal pods that wait, and the datasets that they mount. */
export interface Waiting {
  readonly spec: PodSpec
  /** Of one pod. */
  readonly requests: Quantities
  /** How many pods there are. */
  readonly count: number
  readonly datasets: readonly string[]
}

/** The nodes with an agent, and what is known of them at this moment. */
export interface NodeChoices {
  readonly nodes: readonly NodeObject[]
  /** Resources that no pod has asked for, by node. */
  readonly free: ReadonlyMap<string, Quantities>
  /** Copies of the datasets on all nodes. */
  readonly copies: readonly CopyUse[]
  /** How many other jobs wait for a dataset, by the node where it will be and its name. */
  readonly coming: ReadonlyMap<string, ReadonlyMap<string, number>>
  /** Free bytes of the disk with the cache, by node. */
  readonly freeBytes: ReadonlyMap<string, number>
}

/**
 * Chooses the nodes where pods should find their datasets: as few as have room for all of them, best first. Empty if no
 * node suits the pods. Compares nodes in this order:
 *
 * | rule                        | reason                                                           |
 * |-----------------------------|------------------------------------------------------------------|
 * | has free resources for one  | on a full node the data would wait, and the pod start elsewhere  |
 * | has more of the datasets    | nothing needs to be downloaded                                   |
 * | will have more of them      | two nodes need not download the same                             |
 * | will have fewer others      | jobs that wait for those may join there                          |
 * | more free bytes             | least is evicted                                                 |
 * | name                        | every call chooses alike                                         |
 */
export function chooseNodes(waiting: Waiting, choices: NodeChoices): readonly string[] {
  const { spec, requests, count, datasets } = waiting
  const { nodes, free, copies, coming, freeBytes } = choices
  const hints = new Map(rankHints(datasets, copies).map((hint) => [hint.node, hint]))
  const ranked = nodes
    .filter((node) => suitsNode(spec, requests, node))
    .map(({ name, allocatable }) => {
      const awaited = coming.get(name) ?? new Map()
      const shared = datasets.filter((dataset) => awaited.has(dataset)).length
      return {
        name,
        fits: countFits(requests, free.get(name) ?? allocatable),
        most: countFits(requests, allocatable),
        ready: hints.get(name)?.readyShare ?? 0,
        staging: Math.max(hints.get(name)?.stagingShare ?? 0, shared),
        others: awaited.size - shared,
        bytes: freeBytes.get(name) ?? 0,
      }
    })
    .sort(
      (a, b) =>
        Math.sign(b.fits) - Math.sign(a.fits) ||
        b.ready - a.ready ||
        b.staging - a.staging ||
        a.others - b.others ||
        b.bytes - a.bytes ||
        (a.name < b.name ? -1 : 1),
    )
  const chosen: string[] = []
  let left = count
  for (const { name, fits, most } of ranked) {
    if (left <= 0) break
    chosen.push(name)
    left -= fits || most
  }
  return chosen
}
