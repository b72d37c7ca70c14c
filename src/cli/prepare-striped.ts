import type { NodeOutcome } from '../agent/prepare-on-nodes.js'
import type { Dataset } from '../model/dataset.js'
import type { LeaseRequest } from '../model/lease.js'
import { alignColumns } from './align-columns.js'
import type { CliContext } from './context.js'
import { outcomeColumns, outcomeFields, showNodes, throwFailures } from './prepare-elsewhere.js'

/** `dsc prepare --stripe`: has agents stage a share each; this node's share is the path that a job reads here. */
export async function prepareStriped(
  context: CliContext,
  dataset: Dataset,
  lease: LeaseRequest,
  options: {
    readonly nodes: readonly string[]
    readonly isRefresh: boolean
    readonly bandwidthBytesPerSecond?: number
  },
): Promise<void> {
  const { prepareStripes } = await import('../agent/prepare-stripes.js')
  const { readAgentAccess } = await import('../agent/agent-access.js')
  const config = await context.config()
  const outcomes = await prepareStripes({
    ...{ dataset, lease, signal: context.signal, ...options },
    record: await context.openRecord(),
    access: await readAgentAccess(config),
    onProgress: showNodes(context, dataset.name),
  })
  context.report.progress(undefined)
  const ready = outcomes.flatMap((outcome) => (outcome.outcome === 'ready' ? [outcome.prepared.copy] : []))
  const own = ready.find(({ node }) => node === config.node)
  context.report.result(
    {
      ...{
        dataset: dataset.name,
        version: ready[0]?.version ?? null,
        node: config.node,
        path: own?.path ?? null,
      },
      ...{ files: sum(ready, 'files'), bytes: sum(ready, 'contentBytes') },
      stripes: describeStripes(outcomes, options.nodes),
    },
    () => formatStripes(outcomes, options.nodes),
  )
  throwFailures(outcomes)
}

/** One line for each stripe: `1/3`, its node, its path or what failed. */
export function formatStripes(outcomes: readonly NodeOutcome[], nodes: readonly string[]): string {
  return alignColumns(
    outcomes.map((outcome) => [
      `${nodes.indexOf(outcome.node) + 1}/${nodes.length}`,
      ...outcomeColumns(outcome),
    ]),
  )
}

export function describeStripes(outcomes: readonly NodeOutcome[], nodes: readonly string[]) {
  return outcomes.map((outcome) => ({ index: nodes.indexOf(outcome.node), ...outcomeFields(outcome) }))
}

function sum<Key extends string>(items: readonly Readonly<Record<Key, number>>[], key: Key): number {
  return items.reduce((total, item) => total + item[key], 0)
}
