import { Command, Option } from 'commander'
import { describeReport, parsePrice } from '../../cache/accounting/describe-report.js'
import { readReport } from '../../cache/accounting/read-report.js'
import { requireKnownNode } from '../../cache/names/known-node.js'
import { parseDuration } from '../../model/duration.js'
import { argument } from '../arguments/parse-argument.js'
import type { CliContext } from '../context.js'
import { formatReport } from '../output/format-report.js'
import { findTerminalWidth } from '../output/text-table.js'

const WEEK_MS = 7 * 24 * 3_600_000

/** `dsc report`: savings from staging, waiting jobs, refusals, unused copies, and suggestions. */
export function reportCommand(context: CliContext): Command {
  return new Command('report')
    .description('show what the cache saved, who waited, and what to change')
    .addOption(
      new Option('--since <duration>', 'the last time span')
        .argParser(argument(parseDuration))
        .default(WEEK_MS, '7d'),
    )
    .option('--node <node>', 'only this node')
    .option(
      '--egress-price <price>',
      'price of a GB that leaves the source, for example 0.09',
      argument(parsePrice),
    )
    .addHelpText(
      'after',
      '\nEach use counts as one reading of the whole dataset. `history` in dsc.yaml says how far back the record goes.\n\nExamples:\n  dsc report\n  dsc report --since 30d --egress-price 0.09\n  dsc report --json | jq .advice',
    )
    .action(
      async (options: { readonly since: number; readonly node?: string; readonly egressPrice?: number }) => {
        if (options.node !== undefined) await requireKnownNode(context, options.node, 'dsc report')
        const record = await context.openRecord()
        const nowMs = context.nowMs()
        const { since, node } = options
        const report = await readReport(record, { sinceMs: Math.max(0, nowMs - since), nowMs, node })
        const price = options.egressPrice === undefined ? undefined : { perGigabyte: options.egressPrice }
        context.report.result(describeReport(report, price), () =>
          formatReport(report, price, findTerminalWidth()),
        )
      },
    )
}
