import type { TransferStatus } from '../../cache/status/compose-status.js'
import type { WaitStatus } from '../../cache/status/list-waits.js'
import { redactUrl } from '../../failure/redact.js'
import { formatReader, formatWay } from '../../tui/view/format-transfer.js'
import { formatPercent, formatShare, formatSpan } from '../../tui/view/text/format-cells.js'
import { formatTable, type TableColumn } from './text-table.js'

/** The downloads, their stagers, and the readers during the download. */
export function formatTransfers(
  transfers: readonly TransferStatus[],
  totalWidth: number | undefined,
): string {
  const columns: readonly TableColumn<TransferStatus>[] = [
    { title: 'STAGING', minWidth: 12, cell: ({ dataset }) => dataset },
    { title: 'NODE', minWidth: 7, dropOrder: 1, cell: formatWay },
    { title: 'WRITTEN', align: 'right', cell: formatWritten },
    { title: 'DONE', align: 'right', cell: formatDone },
    { title: 'STAGER', minWidth: 10, cell: ({ stager }) => stager ?? 'nobody' },
    { title: 'WAITING', align: 'right', cell: ({ waitingTasks }) => String(waitingTasks.length) },
    { title: 'SOURCE', minWidth: 12, dropOrder: 2, cell: ({ source }) => (source ? redactUrl(source) : '-') },
  ]
  const read = transfers.flatMap(({ dataset, readers = [] }) =>
    readers.map((reader) => `${dataset} is read during the download by ${formatReader(reader)}`),
  )
  return [formatTable(transfers, columns, totalWidth), ...read].join('\n')
}

function formatDone({ state, writtenBytes, contentBytes }: TransferStatus): string {
  return state === 'reserved' ? '-' : formatPercent(writtenBytes, contentBytes)
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
    .map((kind) => {
      const [who, what, time] = WAIT_TITLES[kind]
      const columns: readonly TableColumn<WaitStatus>[] = [
        { title: who, minWidth: 12, cell: ({ task }) => task },
        { title: what, minWidth: 10, cell: ({ dataset }) => dataset },
        { title: 'NODE', minWidth: 7, dropOrder: 1, cell: ({ node }) => node },
        { title: time, align: 'right', cell: ({ sinceMs }) => formatSpan(nowMs - sinceMs) },
        { title: 'BECAUSE', minWidth: 20, cell: ({ reason }) => reason.split('\n', 1)[0]! },
      ]
      const some = waits.filter((wait) => wait.kind === kind)
      return formatTable(some, columns, totalWidth)
    })
    .filter((table) => table !== '')
    .join('\n\n')
}
