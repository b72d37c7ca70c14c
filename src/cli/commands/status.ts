import { Command, Option } from 'commander'
import { requireKnownDataset } from '../../cache/names/known-dataset.js'
import { requireKnownNode } from '../../cache/names/known-node.js'
import { addReaders } from '../../cache/status/add-readers.js'
import { measureOwnNode } from '../../cache/status/measure-own-node.js'
import type { StatusFilter } from '../../cache/status/status-snapshot.js'
import { summarizeDatasets, summarizeStatus } from '../../cache/status/summarize-status.js'
import { DscError } from '../../failure/dsc-error.js'
import { keepHeapSmall } from '../../platform/small-heap.js'
import { THEMES, type ThemeName } from '../../tui/view/text/theme.js'
import type { CliContext } from '../context.js'
import { formatStatusJson, formatStatusLines, formatStatusText } from '../output/status-pieces.js'
import { countStatusLines, formatSummary, MAX_ROWS } from '../output/status-table.js'
import { findTerminalWidth, MAX_LINE_CELLS } from '../output/text-table.js'
import { fitsLiveScreen } from '../status/fits-live-screen.js'
import { ActionPerformer } from '../status/perform-actions.js'
import { createRecordSource } from '../status/record-source.js'

/** Maximum number of lines before a summary replaces them: nobody reads more, and it takes the memory of every copy. */
const MAX_LINES = 200

/** `dsc status`: a live screen on a terminal, a table or JSON elsewhere. */
export function statusCommand(context: CliContext) {
  return new Command('status')
    .option('--plain', 'print a table once')
    .addOption(new Option('--theme <name>', 'colors of the live screen').choices(THEMES).env('DSC_THEME'))
    .option('--all', 'print every copy')
    .option('--node <node>', 'only this node')
    .option('--dataset <dataset>', 'only copies of this dataset')
    .option('--ndjson', 'print JSON, one object a line')
    .addHelpText(
      'after',
      `
Examples:
  dsc status                             look, live; ? shows the keys
  dsc status --plain --node gpu-07
  dsc status --all > copies.txt           every copy of a large cluster
  dsc status --json | jq '.copies[] | select(.referenceCount == 0) | .dataset'`,
    )
    .action(async (options) => {
      const dataset =
        options.dataset && (await requireKnownDataset(context, options.dataset, 'dsc status --dataset'))
      const filter: StatusFilter = { node: options.node, dataset }
      if (options.node !== undefined) await requireKnownNode(context, options.node, 'dsc status')
      const isLive =
        !options.plain &&
        !options.all &&
        !context.report.isJson &&
        process.stdout.isTTY === true &&
        process.stdin.isTTY === true &&
        context.environment.TERM !== 'dumb'
      if (isLive && (await mayShowLive(context, filter))) {
        await showLive({ filter, theme: options.theme }, context)
        return
      }
      keepHeapSmall()
      const record = await context.openRecord()
      const nowMs = context.nowMs()
      const ownNode = await measureOwnNode(await context.config(), nowMs)
      const width = findTerminalWidth() ?? MAX_LINE_CELLS
      const read = await summarizeStatus(record, filter, { nowMs, ownNode })
      const summary = { ...read, transfers: await addReaders(read.transfers, ownNode) }
      const supply = { record, filter, summary }
      if (options.ndjson) await context.report.stream(formatStatusLines(supply))
      else if (context.report.isJson) await context.report.stream(formatStatusJson(supply))
      else {
        const datasets = await summarizeDatasets(record, filter, { limit: MAX_ROWS.datasets, nowMs })
        if (options.all || countStatusLines(summary, datasets.total) <= MAX_LINES)
          await context.report.stream(formatStatusText(supply, width))
        else await context.report.stream([`${formatSummary(summary, datasets, width)}\n`])
      }
    })
}

async function mayShowLive(context: CliContext, filter: StatusFilter): Promise<boolean> {
  const record = await context.openRecord()
  if (record.isReadOnly) return false
  const isFew = await fitsLiveScreen(record, filter, context.nowMs())
  if (!isFew) context.report.note('more copies than a live screen holds: dsc status --node <node>')
  return isFew
}

async function showLive(
  { filter, theme }: { readonly filter: StatusFilter; readonly theme: ThemeName | undefined },
  context: CliContext,
): Promise<void> {
  // React's development build is slower and keeps a measurement of every render forever.
  process.env.NODE_ENV ??= 'production'
  const { RecordReader } = await import('../../cache/status/status-reader.js')
  const { DAY_EVENTS, DAY_MS, MAX_DAY_EVENTS } = await import('../../cache/status/trace-day.js')
  const { showStatusScreen } = await import('../../tui/start.js')
  const { readReport } = await import('../../cache/accounting/read-report.js')
  const { formatReport } = await import('../output/format-report.js')
  const config = await context.config()
  const place = config.record
  const ownFile = config.door === undefined && place.kind === 'sqlite' ? place.path : undefined
  const records = createRecordSource(context.reopenRecord, ownFile)
  const closing = new AbortController()
  const actions = new ActionPerformer({ ...context, signal: closing.signal }, records.current)
  try {
    // A record that cannot be opened at all fails the command; one that goes away later is shown as such.
    await records.current()
    const measure = () => measureOwnNode(config, context.nowMs())
    const clock = { nowMs: context.nowMs, elapsedMs: () => performance.now() }
    const reader = new RecordReader({ supply: records, filter, clock, measureOwnNode: measure })
    await showStatusScreen({
      reader: {
        read: async () => {
          const status = await reader.read()
          return { ...status, transfers: await addReaders(status.transfers, await measure()) }
        },
        completeInMs: () => reader.completeInMs(),
        waitForChange: (wait) => reader.waitForChange(wait),
      },
      readHistory: async (copyId) => (await records.current()).listEvents({ copyId, limit: 50 }),
      readDay: async () => {
        const sinceMs = context.nowMs() - DAY_MS
        return (await records.current()).listEvents({
          node: filter.node,
          dataset: filter.dataset,
          kinds: DAY_EVENTS,
          sinceMs,
          limit: MAX_DAY_EVENTS,
        })
      },
      readReport: async (sinceMs) => {
        const nowMs = context.nowMs()
        const record = await records.current()
        const report = await readReport(record, { sinceMs: nowMs - sinceMs, nowMs, node: filter.node })
        return (columns) => formatReport(report, undefined, columns).split('\n')
      },
      ownNode: config.node,
      actions,
      environment: context.environment,
      theme,
      nowMs: context.nowMs,
      signal: context.signal,
    })
  } finally {
    closing.abort('the screen was closed')
    await actions.settle()
    await records.discard()
  }
  if (context.signal.aborted) throw new DscError('INTERRUPTED', `stopped by ${String(context.signal.reason)}`)
}
