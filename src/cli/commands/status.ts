import { Command } from 'commander'
import { DscError } from '../../failure/dsc-error.js'
import { requireKnownDataset } from '../../library/known-dataset.js'
import { requireKnownNode } from '../../library/known-node.js'
import { keepYoungGenerationSmall } from '../../platform/young-generation.js'
import { describeStatus } from '../../stage/status-json.js'
import { readStatus, type StatusFilter } from '../../stage/status-snapshot.js'
import type { CliContext } from '../context.js'
import { measureOwnNode } from '../own-node.js'
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
      if (options.node !== undefined) await requireKnownNode(context, options.node, 'dsc status')
      if (options.dataset !== undefined)
        await requireKnownDataset(context, options.dataset, 'dsc status --dataset')
      const isLive =
        !options.plain &&
        !context.report.isJson &&
        process.stdout.isTTY === true &&
        process.stdin.isTTY === true &&
        context.environment.TERM !== 'dumb'
      if (isLive) {
        await showLive(filter, context)
        return
      }
      keepYoungGenerationSmall()
      const record = await context.openRecord()
      const nowMs = context.nowMs()
      const snapshot = await readStatus(
        record,
        filter,
        nowMs,
        await measureOwnNode(await context.config(), nowMs),
      )
      context.report.result(describeStatus(snapshot), () => formatStatus(snapshot, findTerminalWidth()))
    })
}

async function showLive(filter: StatusFilter, context: CliContext): Promise<void> {
  // React's development build is slower and keeps a measurement of every render for ever.
  process.env.NODE_ENV ??= 'production'
  const { createStatusReader } = await import('../../stage/status-reader.js')
  const { showStatusScreen } = await import('../../tui/start.js')
  const config = await context.config()
  const place = config.record
  const records = createRecordSource(context.reopenRecord, place.kind === 'sqlite' ? place.path : undefined)
  const closing = new AbortController()
  const actions = createStatusActions(context, records.current, closing.signal)
  try {
    // A record that cannot be opened at all is a failure of the command; one that goes away later is shown.
    await records.current()
    const clock = { nowMs: context.nowMs, elapsedMs: () => performance.now() }
    await showStatusScreen({
      reader: createStatusReader(records, filter, clock, () => measureOwnNode(config, context.nowMs())),
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
