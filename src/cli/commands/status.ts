import { userInfo } from 'node:os'
import { Command } from 'commander'
import { DscError } from '../../failure/dsc-error.js'
import type { RecordStore } from '../../records/record-store.js'
import { describeStatus } from '../../stage/status-json.js'
import { readStatus, type StatusFilter } from '../../stage/status-snapshot.js'
import type { StatusActions } from '../../tui/status-actions.js'
import type { CliContext } from '../context.js'
import { formatStatus } from '../status-table.js'
import { findTerminalWidth } from '../text-table.js'

interface StatusOptions {
  readonly plain?: true
  readonly node?: string
  readonly dataset?: string
}

/** `dsc status`: a live screen on a terminal, a table or JSON elsewhere. */
export function statusCommand(
  context: CliContext,
  createActions: (record: RecordStore, context: CliContext) => StatusActions = recordActions,
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
      const record = await context.openRecord()
      try {
        if (isLive) await showLive(record, filter, context, createActions(record, context))
        else {
          const snapshot = await readStatus(record, filter, context.nowMs())
          context.report.result(describeStatus(snapshot), () => formatStatus(snapshot, findTerminalWidth()))
        }
      } finally {
        await record.close()
      }
    })
}

async function showLive(
  record: RecordStore,
  filter: StatusFilter,
  context: CliContext,
  actions: StatusActions,
): Promise<void> {
  const { createStatusReader } = await import('../../stage/status-reader.js')
  const { showStatusScreen } = await import('../../tui/start.js')
  await showStatusScreen({
    reader: createStatusReader(record, filter, {
      nowMs: context.nowMs,
      elapsedMs: () => performance.now(),
    }),
    readHistory: (copyId) => record.listEvents({ copyId, limit: 50 }),
    actions,
    environment: context.environment,
    nowMs: context.nowMs,
    signal: context.signal,
  })
}

/** Locks through the record; what needs the cache itself is left to its own commands. */
function recordActions(record: RecordStore, context: CliContext): StatusActions {
  const setLock = async (copyId: string, reason: string | null) => {
    const by = userInfo().username
    const nowMs = context.nowMs()
    const lock = reason === null ? null : { by, reason, atMs: nowMs }
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
