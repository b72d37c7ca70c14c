import { Command, Option } from 'commander'
import { describeReport, parsePrice } from '../../cache/accounting/describe-report.js'
import { formatJobs } from '../../cache/accounting/format-jobs.js'
import { namesOf } from '../../cache/accounting/read-receipt.js'
import { type Report, readReport } from '../../cache/accounting/read-report.js'
import { requireKnownNode } from '../../cache/names/known-node.js'
import { DscError } from '../../failure/dsc-error.js'
import { parseDuration } from '../../model/duration.js'
import { argument } from '../arguments/parse-argument.js'
import type { CliContext } from '../context.js'
import { formatReport } from '../output/format-report.js'
import { findTerminalWidth } from '../output/text-table.js'

const WEEK_MS = 7 * 24 * 3_600_000

/** `dsc report`: savings from staging, waiting jobs, refusals, unused copies, and suggestions. */
export function reportCommand(context: CliContext) {
  return new Command('report')
    .addOption(
      new Option('--since <duration>', 'the last time span')
        .argParser(argument(parseDuration))
        .default(WEEK_MS, '7d'),
    )
    .option('--node <node>', 'only this node')
    .option('--job [task]', 'how long GPUs waited, and for what: all jobs, or one')
    .option(
      '--egress-price <price>',
      'price of a GB that leaves the source, for example 0.09',
      argument(parsePrice),
    )
    .addHelpText(
      'after',
      '\nEach use counts as one reading of the whole dataset. `history` in dsc.yaml says how far back the record goes.\n\nExamples:\n  dsc report\n  dsc report --since 30d --egress-price 0.09\n  dsc report --job 4711\n  dsc report --json | jq .advice',
    )
    .action(async (options) => {
      if (options.node !== undefined) await requireKnownNode(context, options.node, 'dsc report')
      const record = await context.openRecord()
      const nowMs = context.nowMs()
      const { since, node } = options
      const report = await readReport(record, { sinceMs: Math.max(0, nowMs - since), nowMs, node })
      if (options.job !== undefined) return reportJobs(context, report, options.job)
      const price = options.egressPrice === undefined ? undefined : { perGigabyte: options.egressPrice }
      context.report.result(describeReport(report, price), () =>
        formatReport(report, price, findTerminalWidth()),
      )
    })
}

/** Shows how long the GPUs of jobs waited; throws COPY_NOT_FOUND for a task of which the time span knows nothing. */
function reportJobs(context: CliContext, report: Report, asked: string | true): void {
  const jobs = report.jobs.filter(({ task }) => asked === true || namesOf(asked).includes(task))
  if (jobs.length === 0 && asked !== true)
    throw new DscError('COPY_NOT_FOUND', `no job ${asked} used a dataset in this time`, {
      hint: 'dsc report --job lists all jobs; --since looks further back',
    })
  context.report.result(describeReport({ ...report, jobs }, undefined), () => formatJobs(jobs))
}
