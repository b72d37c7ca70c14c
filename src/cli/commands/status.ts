import { Command } from 'commander'
import { DscError } from '../../failure/dsc-error.js'
import { describeStatus } from '../../stage/status-json.js'
import { readStatus, type StatusFilter } from '../../stage/status-snapshot.js'
import type { CliContext } from '../context.js'
import { createRecordSource } from '../record-source.js'
import { createStatusActions } from '../status-actions.js'
import { formatStatus } from '../status-table.js'
import { findTerminalWidth } from '../text-table.js'

interface StatusOptions {
  readonly plain?: true
  readonly node?: string
  readonly dataset?: string
}

/** `dsc status`: a live screen on a terminal, a table or JSON elsewhere. */
export function statusCommand(context: CliContext): Command {
  return new Command('status')
    .description('look at nodes, copies, leases and downloads: live on a terminal, else a table')
    .option('--plain', 'print a table once, also on a terminal')
    .option('--node <node>', 'only this node')
    .option('--dataset <dataset>', 'only copies of this dataset')
    .addHelpText(
      'after',
      `
Examples:
  dsc status                             look, live; ? shows the keys
  dsc status --plain --node gpu-07
  dsc status --json | jq '.copies[] | select(.referenceCount == 0) | .dataset'`,
    )
    .action(async (options: StatusOptions) => {
      const filter: StatusFilter = {
        ...(options.node === undefined ? {} : { node: options.node }),
        ...(options.dataset === undefined ? {} : { dataset: options.dataset }),
      }
      const isLive =
        !options.plain &&
        !context.report.isJson &&
        process.stdout.isTTY === true &&
        process.stdin.isTTY === true
      if (isLive) {
        await showLive(filter, context)
        return
      }
      const record = await context.openRecord()
      const snapshot = await readStatus(record, filter, context.nowMs())
      context.report.result(describeStatus(snapshot), () => formatStatus(snapshot, findTerminalWidth()))
    })
}

async function showLive(filter: StatusFilter, context: CliContext): Promise<void> {
  const { createStatusReader } = await import('../../stage/status-reader.js')
  const { showStatusScreen } = await import('../../tui/start.js')
  const { record: place } = await context.config()
  const records = createRecordSource(context.reopenRecord, place.kind === 'sqlite' ? place.path : undefined)
  const closing = new AbortController()
  const actions = createStatusActions(context, records.current, closing.signal)
  try {
    // A record that cannot be opened at all is a failure of the command; one that goes away later is shown.
    await records.current()
    const clock = { nowMs: context.nowMs, elapsedMs: () => performance.now() }
    await showStatusScreen({
      reader: createStatusReader(records, filter, clock),
      readHistory: async (copyId) => (await records.current()).listEvents({ copyId, limit: 50 }),
      actions,
      environment: context.environment,
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
