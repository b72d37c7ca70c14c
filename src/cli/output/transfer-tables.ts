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
    transfer.state === 'reserved' ? 'listing' : formatShare(transfer.writtenBytes, transfer.contentBytes),
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

/** Waiting tasks; for a refusal, its first line, which says how much was needed. */
export function formatWaits(
  waits: readonly WaitStatus[],
  nowMs: number,
  totalWidth: number | undefined,
): string {
  const columns = [
    { title: 'WAITS', minWidth: 12 },
    { title: 'FOR', minWidth: 10 },
    { title: 'NODE', minWidth: 7, dropOrder: 1 },
    { title: 'SINCE', align: 'right' },
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
