import { Command } from 'commander'
import { requireKnownDataset } from '../../cache/names/known-dataset.js'
import { requireKnownNode } from '../../cache/names/known-node.js'
import { describeEvent, describeExplanation } from '../../cache/status/describe-status.js'
import { readExplanation } from '../../cache/status/read-explanation.js'
import { isFailureId } from '../../failure/failure-id.js'
import { formatDuration } from '../../model/duration.js'
import type { RecordEvent } from '../../model/record-event.js'
import { keepHeapSmall } from '../../platform/small-heap.js'
import type { CliContext } from '../context.js'
import { formatExplanation } from '../output/format-explanation.js'
import { findTerminalWidth } from '../output/text-table.js'

/** `dsc why <dataset>`: why it is here, was evicted or refused; what holds it; what would be evicted next. */
export function whyCommand(context: CliContext) {
  return new Command('why')
    .argument('<dataset>', 'a dataset, its URL, or the id of a failure')
    .option('--node <node>', 'only this node')
    .addHelpText(
      'after',
      `
Examples:
  dsc why flowers
  dsc why flowers --node gpu-07
  dsc why 5f0c1d9a2b7e            the failure with this id
  dsc why flowers --json | jq '.copies[].keptBy'`,
    )
    .action(async (named, options) => {
      const failure = await findFailure(context, named)
      if (failure) {
        context.report.result<'why <id>'>({ id: named, failure: describeEvent(failure) }, () =>
          formatFailure(failure, context.nowMs()),
        )
        return
      }
      const dataset = await requireKnownDataset(context, named, 'dsc why')
      if (options.node !== undefined) await requireKnownNode(context, options.node, `dsc why ${dataset}`)
      keepHeapSmall()
      const record = await context.openRecord()
      const nowMs = context.nowMs()
      const whole = context.report.isJson ? { outlooks: Number.POSITIVE_INFINITY } : {}
      const explained = await readExplanation(record, dataset, { node: options.node, nowMs, ...whole })
      context.report.result(describeExplanation(explained), () =>
        formatExplanation(explained, nowMs, findTerminalWidth()),
      )
    })
}

/** The failure with `word` as its id in the history, if that can be an id. */
async function findFailure(context: CliContext, word: string): Promise<RecordEvent | undefined> {
  if (!isFailureId(word)) return undefined
  const [found] = await (await context.openRecord()).listEvents({ failureId: word, limit: 1 })
  return found
}

function formatFailure(
  { dataset, node, kind, task, atMs, reason, detail }: RecordEvent,
  nowMs: number,
): string {
  const refused = {
    refused: `${dataset} was refused`,
    'eviction-refused': 'an eviction was refused',
  } as const
  const isNamed = dataset !== '*'
  const what = kind in refused ? refused[kind as keyof typeof refused] : `${dataset} could not be staged`
  return [
    `${what} on node ${node} ${formatDuration(nowMs - atMs)} ago, at ${new Date(atMs).toISOString()}${task === null ? '' : `, for ${task}`}:`,
    reason,
    ...(typeof detail.hint === 'string' ? [`  try: ${detail.hint}`] : []),
    isNamed ? `  now: dsc why ${dataset}` : '  now: dsc status',
  ].join('\n')
}
