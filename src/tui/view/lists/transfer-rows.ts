import type { StatusSnapshot, TransferStatus } from '../../../cache/status/compose-status.js'
import type { Throughput } from '../../../cache/status/throughput.js'
import { estimateLeftMs, findRate } from '../../../cache/status/transfer-rates.js'
import { formatByteSize } from '../../../model/byte-size.js'
import type { ReaderStatus } from '../../../model/reader-status.js'
import type { ColumnSpec } from '../text/column-layout.js'
import { formatPercent, formatShare, formatSpan } from '../text/format-cells.js'
import { drawBar, type Glyphs, UNICODE_GLYPHS } from '../text/glyphs.js'
import { type Span, span } from '../text/styled-line.js'
import { type DrawContext, type ListChoice, type ListRows, matchesFilter, widthOf } from './list-rows.js'
import { type SortValues, sortRows } from './sort-rows.js'

const sortValues = ({ progress }: Throughput): SortValues<TransferStatus> => ({
  DATASET: ({ dataset }) => dataset,
  NODE: ({ node }) => node,
  PROGRESS: ({ writtenBytes, contentBytes }) => (contentBytes > 0 ? writtenBytes / contentBytes : 0),
  WRITTEN: ({ writtenBytes }) => writtenBytes,
  LEFT: ({ writtenBytes, contentBytes }) => contentBytes - writtenBytes,
  STAGER: ({ stager }) => stager ?? '',
  WAITING: ({ waitingTasks }) => waitingTasks.length,
  RATE: ({ copyId }) => findRate(progress, copyId) ?? -1,
})

function planColumns(snapshot: StatusSnapshot): readonly ColumnSpec[] {
  const name = widthOf(
    snapshot.transfers.values().map((transfer) => transfer.dataset),
    7,
    60,
  )
  const node = widthOf(
    snapshot.transfers.values().map((transfer) => formatWay(transfer)),
    4,
    24,
  )
  return [
    { title: 'DATASET', width: name, minWidth: Math.min(name, 12), grow: 1 },
    { title: 'NODE', width: node, minWidth: Math.min(node, 10), dropOrder: 3 },
    { title: 'PROGRESS', width: 16, minWidth: 13, grow: 1 },
    { title: 'WRITTEN', width: 17, align: 'right', dropOrder: 2 },
    { title: 'RATE', width: 10, align: 'right' },
    { title: 'LEFT', width: 4, align: 'right', dropOrder: 1 },
    { title: 'STAGER', width: 16, minWidth: 8, grow: 1, dropOrder: 4 },
    { title: 'WAITING', width: 7, align: 'right', dropOrder: 5 },
  ]
}

/** The downloads that match the filter. */
export function listTransferRows(
  snapshot: StatusSnapshot,
  { filter, sort, throughput }: ListChoice,
): ListRows {
  const found = snapshot.transfers.filter((transfer) =>
    matchesFilter(filter, [transfer.dataset, formatWay(transfer), transfer.stager, transfer.source]),
  )
  const values = sortValues(throughput)
  const transfers = sortRows(found, sort, values)
  return {
    tab: 'transfers',
    columns: planColumns(snapshot),
    sortable: Object.keys(values),
    keys: transfers.map((transfer) => transfer.copyId),
    total: snapshot.transfers.length,
    copyIdAt: (index) => transfers[index]?.copyId,
    drawAt: (index, widths, context) => drawTransfer(transfers[index]!, widths, context),
    emptyText: filter === '' ? 'Nothing is being staged' : 'No transfer matches the filter',
  }
}

/** The receiving node, and the nodes that serve it: `gpu-02 ← gpu-01`. */
export function formatWay(
  { node, servedBy }: Pick<TransferStatus, 'node' | 'servedBy'>,
  glyphs: Pick<Glyphs, 'from'> = UNICODE_GLYPHS,
): string {
  return servedBy.length === 0 ? node : `${node} ${glyphs.from} ${servedBy.join(', ')}`
}

/** A reader of a copy during its download, and the objects that it waits for. */
export function formatReader({ name, ordered, waits, waitsFor }: ReaderStatus): string {
  const more = waits - waitsFor.length
  const keys = `${waitsFor.join(', ')}${more > 0 ? ` and ${more} more` : ''}`
  return `${name || 'a reader'}: ${waits === 0 ? 'waits for nothing' : `waits for ${keys}`}, ${ordered} ordered ahead`
}

function drawTransfer(
  transfer: TransferStatus,
  widths: readonly number[],
  context: DrawContext,
): readonly Span[] {
  const { writtenBytes, contentBytes } = transfer
  const rate = findRate(context.throughput.progress, transfer.copyId)
  const leftMs = estimateLeftMs(contentBytes - writtenBytes, rate)
  const isListing = transfer.state === 'reserved'
  const barWidth = Math.min(40, Math.max(1, (widths[2] ?? 9) - 5))
  const progress = isListing
    ? 'listing'
    : `${drawBar(contentBytes > 0 ? writtenBytes / contentBytes : 0, barWidth, context.glyphs)} ${formatPercent(writtenBytes, contentBytes).padStart(4)}`
  return [
    span(transfer.dataset),
    span(formatWay(transfer, context.glyphs)),
    span(progress, { color: transfer.stager === null ? 'yellow' : 'cyan' }),
    span(isListing ? '-' : formatShare(writtenBytes, contentBytes)),
    drawRate(transfer, rate),
    span(leftMs === undefined ? '-' : formatSpan(leftMs)),
    transfer.stager === null ? span('nobody', { color: 'yellow' }) : span(transfer.stager),
    span(String(transfer.waitingTasks.length)),
  ]
}

function drawRate(transfer: TransferStatus, rate: number | undefined): Span {
  if (rate === undefined) return span('-', { isDim: true })
  if (rate <= 0 && transfer.state === 'staging') return span('stalled', { color: 'red' })
  return span(`${formatByteSize(rate)}/s`)
}
