import type { TransferStatus } from '../../cache/status/compose-status.js'
import type { WaitStatus } from '../../cache/status/list-waits.js'
import { redactUrl } from '../../failure/redact.js'
import { formatReader, formatWay } from '../../tui/view/format-transfer.js'
import { formatPercent, formatShare, formatSpan } from '../../tui/view/text/format-cells.js'
import { formatTable } from './text-table.js'

/** The downloads, their stagers, and the readers during the download. */
export function formatTransfers(
  transfers: readonly TransferStatus[],
  totalWidth: number | undefined,
): string {
  const columns = [
    { title: 'STAGING', minWidth: 12 },
    { title: 'NODE', minWidth: 7, dropOrder: 1 },
    { title: 'WRITTEN', align: 'right' },
    { title: 'DONE', align: 'right' },
    { title: 'STAGER', minWidth: 10 },
    { title: 'WAITING', align: 'right' },
    { title: 'SOURCE', minWidth: 12, dropOrder: 2 },
  ] as const
  const rows = transfers.map((transfer) => [
    transfer.dataset,
    formatWay(transfer),
    formatWritten(transfer),
    transfer.state === 'reserved' ? '-' : formatPercent(transfer.writtenBytes, transfer.contentBytes),
    transfer.stager ?? 'nobody',
    String(transfer.waitingTasks.length),
    transfer.source === null ? '-' : redactUrl(transfer.source),
  ])
  const read = transfers.flatMap(({ dataset, readers = [] }) =>
    readers.map((reader) => `${dataset} is read during the download by ${formatReader(reader)}`),
  )
  return [formatTable(columns, rows, totalWidth), ...read].join('\n')
}

function formatWritten({ state, stager, writtenBytes, contentBytes }: TransferStatus): string {
  if (state === 'staging') return formatShare(writtenBytes, contentBytes)
  return stager === null ? 'stopped' : 'listing'
}

/** A process waits for a staging; one that was refused room has ended, and the room may be there by now. */
const WAIT_TITLES = { staging: ['WAITS', 'FOR', 'SINCE'], room: ['REFUSED', 'WANTED', 'AGO'] } as const

/** Waiting tasks, and those refused lately with the first line of the reason, which says how much was needed. */
export function formatWaits(
  waits: readonly WaitStatus[],
  nowMs: number,
  totalWidth: number | undefined,
): string {
  return (['staging', 'room'] as const)
    .map((kind) => [kind, waits.filter((wait) => wait.kind === kind)] as const)
    .filter(([, some]) => some.length > 0)
    .map(([kind, some]) => formatKind(WAIT_TITLES[kind], some, nowMs, totalWidth))
    .join('\n\n')
}

function formatKind(
  [who, what, time]: readonly [string, string, string],
  waits: readonly WaitStatus[],
  nowMs: number,
  totalWidth: number | undefined,
): string {
  const columns = [
    { title: who, minWidth: 12 },
    { title: what, minWidth: 10 },
    { title: 'NODE', minWidth: 7, dropOrder: 1 },
    { title: time, align: 'right' },
    { title: 'BECAUSE', minWidth: 20 },
  ] as const
  const rows = waits.map(({ task, dataset, node, sinceMs, reason }) => [
    task,
    dataset,
    node,
    formatSpan(nowMs - sinceMs),
    reason.split('\n', 1)[0]!,
  ])
  return formatTable(columns, rows, totalWidth)
}
