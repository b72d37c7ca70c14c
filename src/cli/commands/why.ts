import { Command } from 'commander'
import { requireKnownDataset } from '../../cache/names/known-dataset.js'
import { requireKnownNode } from '../../cache/names/known-node.js'
import { explainDataset } from '../../cache/status/explain-dataset.js'
import { describeCopy, describeEvent, describeLayout, describeLease } from '../../cache/status/status-json.js'
import { readStatus } from '../../cache/status/status-snapshot.js'
import type { CliContext } from '../context.js'
import { formatExplanation } from '../output/format-explanation.js'
import { findTerminalWidth } from '../output/text-table.js'

/** Events of the dataset that are looked through for what brought it and what took it away. */
const MAX_EVENTS = 500

/** `dsc why <dataset>`: why it is here, was evicted or refused; what keeps it; what would go next. */
export function whyCommand(context: CliContext): Command {
  return new Command('why')
    .description(
      'explain why a dataset is here, was evicted or refused, what keeps it, and what would go next',
    )
    .argument('<dataset>', 'name of the dataset')
    .option('--node <node>', 'only this node')
    .addHelpText(
      'after',
      `
Examples:
  dsc why flowers
  dsc why flowers --node gpu-07
  dsc why flowers --json | jq '.copies[].keptBy'`,
    )
    .action(async (dataset: string, options: { node?: string }) => {
      await requireKnownDataset(context, dataset, 'dsc why')
      if (options.node !== undefined) await requireKnownNode(context, options.node, `dsc why ${dataset}`)
      const record = await context.openRecord()
      const nowMs = context.nowMs()
      const onNode = options.node === undefined ? {} : { node: options.node }
      const status = await readStatus(record, onNode, { nowMs })
      const events = await record.listEvents({ dataset, ...onNode, limit: MAX_EVENTS })
      const explained = explainDataset(dataset, { ...status, events })
      const data = {
        dataset,
        copies: explained.copies.map(({ copy, origin, keepers, leases, rank }) => ({
          ...describeCopy(copy),
          hereBecause: origin ? describeEvent(origin) : null,
          keptBy: keepers,
          leases: leases.map(describeLease),
          evictionRank: rank ?? null,
        })),
        layouts: explained.layouts.map(describeLayout),
        lastEvicted: explained.lastEvicted ? describeEvent(explained.lastEvicted) : null,
        lastRefused: explained.lastRefused ? describeEvent(explained.lastRefused) : null,
        lastFailed: explained.lastFailed ? describeEvent(explained.lastFailed) : null,
        nextVictims: explained.nextVictims.map(({ lastUsedAtMs, ...victim }) => ({
          ...victim,
          lastUsedAt: new Date(lastUsedAtMs).toISOString(),
        })),
      }
      context.report.result(data, () => formatExplanation(explained, nowMs, findTerminalWidth()))
    })
}
