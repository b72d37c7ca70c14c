import { Command } from 'commander'
import { readAgentAccess } from '../../agent/calls/agent-access.js'
import { planRepair, repairStripes } from '../../agent/stripes/repair-stripes.js'
import { requireKnownDataset } from '../../cache/names/known-dataset.js'
import { formatLayout } from '../../cache/status/find-layouts.js'
import { MAX_LEASE_MS } from '../../model/lease.js'
import { holdByThisProcess } from '../../platform/processes.js'
import type { RepairAnswer } from '../answers/cluster-answers.js'
import { parseNodes } from '../arguments/parse-nodes.js'
import type { CliContext } from '../context.js'
import { showNodes, throwFailures } from '../prepare/prepare-elsewhere.js'
import { describeStripes, formatStripes } from '../prepare/prepare-striped.js'

interface RepairOptions {
  readonly onto?: readonly string[]
  readonly dryRun?: true
}

/** `dsc repair`: fetches the stripes of a dataset that were evicted, or lost with their nodes. */
export function repairCommand(context: CliContext): Command {
  return new Command('repair')
    .description('download the lost stripes of a dataset again')
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
    .action(async (named: string, options: RepairOptions) => {
      const dataset = await requireKnownDataset(context, named, 'dsc repair')
      const record = await context.openRecord()
      const plan = await planRepair(record, dataset, options.onto ?? [])
      const { layout, nodes, indexes } = plan
      const planned = indexes.map((index) => ({ index, from: layout.nodes[index]!, node: nodes[index]! }))
      const about = { dsc: 1, dataset, version: layout.version, nodes, missing: planned } as const
      if (options.dryRun || indexes.length === 0) {
        const answer: RepairAnswer = { ...about, isComplete: indexes.length === 0, stripes: [] }
        context.report.result(answer, () =>
          [
            `${dataset}: ${formatLayout(layout)}`,
            ...planned.map(({ index, from, node }) =>
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
      const outcomes = await repairStripes(plan, {
        record,
        lease,
        signal: context.signal,
        onProgress: showNodes(context, dataset),
        access: await readAgentAccess(await context.config()),
      })
      context.report.progress(undefined)
      const isComplete = outcomes.every(({ outcome }) => outcome === 'ready')
      const stripes = describeStripes(outcomes, { nodes, lease })
      const answer: RepairAnswer = { ...about, isComplete, stripes }
      context.report.result(answer, () => formatStripes(outcomes, nodes))
      throwFailures(outcomes)
    })
}
