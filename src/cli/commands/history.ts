import { Command } from 'commander'
import { requireKnownDataset } from '../../cache/names/known-dataset.js'
import { requireKnownNode } from '../../cache/names/known-node.js'
import { describeEvent } from '../../cache/status/describe-status.js'
import { readEventPages } from '../../cache/status/record-pages.js'
import { parseDuration } from '../../model/duration.js'
import type { RecordEvent } from '../../model/record-event.js'
import { keepHeapSmall } from '../../platform/small-heap.js'
import { argument, parseCount } from '../arguments/parse-argument.js'
import type { CliContext } from '../context.js'
import { formatLines, formatList, formatPagedTable } from '../output/list-pieces.js'
import { findTerminalWidth, type TableColumn } from '../output/text-table.js'

/** `dsc history [dataset]`: the events of copies, newest first. */
export function historyCommand(context: CliContext) {
  return new Command('history')
    .argument('[dataset]', 'only this dataset')
    .option('--node <node>', 'only this node')
    .option('--since <duration>', 'only the last time span, for example 24h', argument(parseDuration))
    .option('--limit <count>', 'most events to list', argument(parseCount), 50)
    .option('--ndjson', 'print JSON, one object a line')
    .addHelpText(
      'after',
      `
Examples:
  dsc history flowers
  dsc history --since 24h --node gpu-07
  dsc history --json --limit 1000 | jq '.events[] | select(.kind == "evicted")'`,
    )
    .action(async (named, options) => {
      const dataset = named && (await requireKnownDataset(context, named, 'dsc history'))
      if (options.node !== undefined) await requireKnownNode(context, options.node, 'dsc history')
      keepHeapSmall()
      const record = await context.openRecord()
      const nowMs = context.nowMs()
      const filter = {
        limit: options.limit,
        dataset,
        node: options.node,
        sinceMs: options.since === undefined ? undefined : nowMs - options.since,
      }
      const read = () => readEventPages(record, filter)
      if (options.ndjson) return context.report.stream(formatLines(read(), describeEvent))
      if (context.report.isJson) return context.report.stream(formatList('events', read(), describeEvent))
      const empty = dataset === undefined ? 'No events.' : `No events of ${dataset}.`
      const table = { read, columns: EVENT_COLUMNS, empty }
      return context.report.stream(formatPagedTable(table, findTerminalWidth()))
    })
}

const EVENT_COLUMNS: readonly TableColumn<RecordEvent>[] = [
  { title: 'TIME', cell: ({ atMs }) => formatLocalTime(atMs) },
  { title: 'WHAT', cell: ({ kind }) => kind },
  { title: 'DATASET', minWidth: 10, cell: ({ dataset }) => dataset },
  { title: 'NODE', minWidth: 7, dropOrder: 1, cell: ({ node }) => node },
  { title: 'TASK', minWidth: 8, dropOrder: 2, cell: ({ task }) => task ?? '-' },
  { title: 'WHY', minWidth: 16, cell: ({ reason }) => reason.replace(/\s*\n\s*/g, '; ') },
]

/** `2026-11-21 09:03:44` in the user's time zone. */
function formatLocalTime(atMs: number): string {
  const local = new Date(atMs - new Date(atMs).getTimezoneOffset() * 60_000).toISOString()
  return `${local.slice(0, 10)} ${local.slice(11, 19)}`
}
