import { userInfo } from 'node:os'
import { Command } from 'commander'
import { DscError } from '../../failure/dsc-error.js'
import type { RecordStore } from '../../records/record-store.js'
import { describeStatus } from '../../stage/status-json.js'
import { readStatus, type StatusFilter } from '../../stage/status-snapshot.js'
import type { StatusActions } from '../../tui/status-actions.js'
import type { CliContext } from '../context.js'
import { createRecordSource } from '../record-source.js'
import { formatStatus } from '../status-table.js'
import { findTerminalWidth } from '../text-table.js'

/** Makes what the keys of the screen do; `openRecord` gives the record that the screen reads. */
export type CreateStatusActions = (
  openRecord: () => Promise<RecordStore>,
  context: CliContext,
) => StatusActions

interface StatusOptions {
  readonly plain?: true
  readonly node?: string
  readonly dataset?: string
}

/** `dsc status`: a live screen on a terminal, a table or JSON elsewhere. */
export function statusCommand(
  context: CliContext,
  createActions: CreateStatusActions = recordActions,
): Command {
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
        await showLive(filter, context, createActions)
        return
      }
      const record = await context.openRecord()
      try {
        const snapshot = await readStatus(record, filter, context.nowMs())
        context.report.result(describeStatus(snapshot), () => formatStatus(snapshot, findTerminalWidth()))
      } finally {
        await record.close()
      }
    })
}

async function showLive(
  filter: StatusFilter,
  context: CliContext,
  createActions: CreateStatusActions,
): Promise<void> {
  const { createStatusReader } = await import('../../stage/status-reader.js')
  const { showStatusScreen } = await import('../../tui/start.js')
  const { record: place } = await context.config()
  const records = createRecordSource(context.openRecord, place.kind === 'sqlite' ? place.path : undefined)
  try {
    // A record that cannot be opened at all is a failure of the command; one that goes away later is shown.
    await records.current()
    const clock = { nowMs: context.nowMs, elapsedMs: () => performance.now() }
    await showStatusScreen({
      reader: createStatusReader(records, filter, clock),
      readHistory: async (copyId) => (await records.current()).listEvents({ copyId, limit: 50 }),
      actions: createActions(records.current, context),
      environment: context.environment,
      nowMs: context.nowMs,
      signal: context.signal,
    })
  } finally {
    await records.discard()
  }
  if (context.signal.aborted) throw new DscError('INTERRUPTED', `stopped by ${String(context.signal.reason)}`)
}

/** Locks through the record; what needs the cache itself is left to its own commands. */
function recordActions(openRecord: () => Promise<RecordStore>, context: CliContext): StatusActions {
  const setLock = async (copyId: string, reason: string | null) => {
    const by = userInfo().username
    const nowMs = context.nowMs()
    const lock = reason === null ? null : { by, reason, atMs: nowMs }
    const record = await openRecord()
    const changed = await record.setLock({ copyId }, lock, nowMs)
    if (changed.length === 0) throw new DscError('COPY_NOT_FOUND', 'the copy is gone')
  }
  return {
    lock: setLock,
    unlock: (copyId) => setLock(copyId, null),
    async evict() {
      throw new DscError('USAGE', 'this screen cannot evict yet', { hint: 'dsc evict <dataset>' })
    },
    async prepare(dataset) {
      throw new DscError('USAGE', 'this screen cannot prepare yet', { hint: `dsc prepare ${dataset}` })
    },
  }
}
