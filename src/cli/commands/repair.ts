import { Command } from 'commander'
import type { StripeRepairPlan } from '../../agent/stripes/plan-stripe-repair.js'
import { planRepair } from '../../agent/stripes/repair-stripes.js'
import { requireKnownDataset } from '../../cache/names/known-dataset.js'
import { formatLayout } from '../../cache/status/find-layouts.js'
import { MAX_LEASE_MS } from '../../model/lease.js'
import { holdByThisProcess } from '../../platform/processes.js'
import { parseNodes } from '../arguments/parse-nodes.js'
import type { CliContext } from '../context.js'
import { showNodes, throwFailures } from '../prepare/prepare-elsewhere.js'
import { describeStripes, formatStripes } from '../prepare/prepare-striped.js'

/** `dsc repair`: fetches the stripes of a dataset that were evicted, or lost with their nodes. */
export function repairCommand(context: CliContext) {
  return new Command('repair')
    .argument('<dataset>', 'a dataset prepared with --stripe')
    .option(
      '--onto <nodes>',
      'nodes for the lost stripes (default: their own, or the one with most space)',
      parseNodes,
    )
    .option('--dry-run', 'show what would be downloaded where')
    .addHelpText(
      'after',
      `
A stripe is lost if it was evicted, or if its node was forgotten (\`dsc record forget-node\`).
For damaged files, use \`dsc verify --repair\`.

Examples:
  dsc repair flowers --dry-run
  dsc repair flowers
  dsc repair flowers --onto gpu-04`,
    )
    .action(async (named, options) => {
      const dataset = await requireKnownDataset(context, named, 'dsc repair')
      const record = await context.openRecord()
      const onto = options.onto ?? []
      const plan = await planRepair(record, dataset, onto)
      if (options.dryRun || plan.indexes.length === 0) {
        const { layout, nodes, indexes } = plan
        const about = describePlan(plan)
        context.report.result<'repair'>({ ...about, isComplete: indexes.length === 0, stripes: [] }, () =>
          [
            `${dataset}: ${formatLayout(layout)}`,
            ...about.missing.map(({ index, from, node }) =>
              from === node
                ? `would fetch ${index + 1}/${nodes.length} on ${node}`
                : `would fetch ${index + 1}/${nodes.length} on ${node}, in the place of ${from}`,
            ),
          ].join('\n'),
        )
        return
      }
      const holder = holdByThisProcess()
      const lease = {
        task: `dsc repair:${process.pid}`,
        holder,
        expiresAtMs: holder.kind === 'process' ? null : context.nowMs() + MAX_LEASE_MS,
      }
      const cluster = await context.openCluster()
      const { plan: repaired, outcomes } = await cluster.repairStripes(
        { dataset, onto, lease },
        { signal: context.signal, onProgress: showNodes(context, dataset) },
      )
      context.report.progress(undefined)
      const { nodes } = repaired
      const isComplete = outcomes.every(({ outcome }) => outcome === 'ready')
      const stripes = describeStripes(outcomes, { nodes, lease })
      context.report.result<'repair'>({ ...describePlan(repaired), isComplete, stripes }, () =>
        formatStripes(outcomes, nodes),
      )
      throwFailures(outcomes)
    })
}

function describePlan({ layout, nodes, indexes }: StripeRepairPlan) {
  const missing = indexes.map((index) => ({ index, from: layout.nodes[index]!, node: nodes[index]! }))
  return { dataset: layout.dataset, version: layout.version, nodes, missing } as const
}
