import type { StripedLayout } from '../../cache/status/find-layouts.js'
import { DscError } from '../../failure/dsc-error.js'

/** Which stripes to fetch again, and where the layout then lies. */
export interface StripeRepairPlan {
  readonly layout: StripedLayout
  /** The nodes of all stripes after the repair. */
  readonly nodes: readonly string[]
  /** Stripes to fetch, from 0; empty: none are missing. */
  readonly indexes: readonly number[]
}

/** A node that could take a stripe. */
interface RepairNode {
  readonly node: string
  readonly freeBytes: number
}

/**
 * Plans how the latest layout of a dataset becomes complete again.
 *
 * | the missing stripe goes to            | when                                        |
 * |---------------------------------------|---------------------------------------------|
 * | the next node of `onto`               | one is left                                 |
 * | its own node                          | that node's agent reports                   |
 * | the node with the most free bytes     | it reports and has no other stripe of these |
 *
 * Throws COPY_NOT_FOUND when no stripe is left, USAGE when `onto` has a node that holds a stripe already, and
 * AGENT_UNREACHABLE when no node is left to take one.
 */
export function planStripeRepair(
  dataset: string,
  layouts: readonly StripedLayout[],
  nodes: {
    /** Nodes whose agents report. */
    readonly alive: readonly RepairNode[]
    readonly onto: readonly string[]
  },
): StripeRepairPlan {
  const { alive, onto } = nodes
  const layout = layouts.find(
    (candidate) => candidate.dataset === dataset && candidate.stripes.some(({ state }) => state === 'ready'),
  )
  if (!layout) {
    throw new DscError('COPY_NOT_FOUND', `no stripe of ${dataset} is left on any node`, {
      hint: `dsc prepare ${dataset} --stripe <nodes>`,
    })
  }
  const kept = new Set(layout.stripes.filter(({ state }) => state === 'ready').map(({ node }) => node))
  const holder = onto.find((node, at) => kept.has(node) || onto.indexOf(node) < at)
  if (holder !== undefined) {
    throw new DscError('USAGE', `--onto: ${holder} holds a stripe of ${dataset} already`, {
      hint: 'a node holds one stripe of a dataset; dsc status shows which',
    })
  }
  const lost = layout.stripes.filter(({ state }) => state !== 'ready')
  const named = [...onto]
  const taken = new Set([...kept, ...onto])
  const targets = [...layout.nodes]
  for (const { index, node } of lost) {
    const own = alive.find((candidate) => candidate.node === node && !taken.has(node))?.node
    const target = named.shift() ?? own ?? findRoomiest(alive, new Set([...taken, ...layout.nodes]))
    if (target === undefined) {
      throw new DscError(
        'AGENT_UNREACHABLE',
        `stripe ${index + 1}/${targets.length} of ${dataset} was on ${node}, which does not report, and no other node without a stripe does`,
        { hint: `start \`dsc agent\` on ${node}, or: dsc repair ${dataset} --onto <node>` },
      )
    }
    taken.add(target)
    targets[index] = target
  }
  return { layout, nodes: targets, indexes: lost.map(({ index }) => index) }
}

function findRoomiest(alive: readonly RepairNode[], taken: ReadonlySet<string>): string | undefined {
  return alive
    .filter(({ node }) => !taken.has(node))
    .toSorted((a, b) => b.freeBytes - a.freeBytes || (a.node < b.node ? -1 : 1))[0]?.node
}
