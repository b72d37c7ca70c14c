import { type EgressPrice, priceSaved } from '../../cache/accounting/describe-report.js'
import type { Report } from '../../cache/accounting/read-report.js'
import { formatByteSize } from '../../model/byte-size.js'
import { formatDuration } from '../../model/duration.js'
import { formatCount } from '../../model/format-count.js'
import { formatPercent, formatSpan } from '../../tui/view/text/format-cells.js'
import { formatTable, type TableColumn } from './text-table.js'

const MAX_ROWS = 15

/** Formats a report for people: savings first, then waits, refusals, unused copies and suggestions. */
export function formatReport(
  report: Report,
  price: EgressPrice | undefined,
  totalWidth: number | undefined,
): string {
  const parts = [
    formatSums(report, price),
    formatDatasets(report, totalWidth),
    formatWaits(report, totalWidth),
    formatRefusals(report, totalWidth),
    formatUnused(report, totalWidth),
    formatAdvice(report),
  ]
  return parts.filter((part) => part !== '').join('\n\n')
}

function formatSums(report: Report, price: EgressPrice | undefined): string {
  const { uses, hits, readBytes, storeBytes, peerBytes, savedBytes, waitedMs } = report
  const span = formatDuration(report.untilMs - report.sinceMs)
  if (uses + report.refusals.length === 0) return `Last ${span}: no dataset was used.`
  const money = priceSaved(report, price)
  return [
    `Last ${span}${report.node === null ? '' : ` on ${report.node}`}:`,
    `  used     ${formatCount(uses, 'time')}, ${formatPercent(hits, uses)} found the dataset ready`,
    `  read     ${formatByteSize(readBytes)}, each use counted as one reading of the whole`,
    `  fetched  ${formatByteSize(storeBytes)} from the store, ${formatByteSize(peerBytes)} from other nodes`,
    `  saved    ${formatByteSize(savedBytes)} that the store did not send${money === null ? '' : `, ${money.toFixed(2)} at ${price!.perGigabyte} for each GB`}`,
    `  waited   ${formatDuration(waitedMs)} in all`,
    ...(report.usesOfUnknownSize > 0
      ? [`  ${formatCount(report.usesOfUnknownSize, 'use')} of an earlier dsc are not in the bytes`]
      : []),
  ].join('\n')
}

function formatDatasets({ datasets }: Report, totalWidth: number | undefined): string {
  return formatFirst(datasets, totalWidth, [
    { title: 'DATASET', minWidth: 12, cell: ({ dataset }) => dataset },
    { title: 'USES', align: 'right', cell: ({ uses }) => String(uses) },
    { title: 'HITS', align: 'right', cell: ({ hits, uses }) => formatPercent(hits, uses) },
    { title: 'READ', align: 'right', cell: ({ readBytes }) => formatByteSize(readBytes) },
    { title: 'FROM STORE', align: 'right', cell: ({ storeBytes }) => formatByteSize(storeBytes) },
    { title: 'FROM NODES', align: 'right', cell: ({ peerBytes }) => formatByteSize(peerBytes) },
    { title: 'WAITED', align: 'right', cell: ({ waitedMs }) => formatDuration(waitedMs) },
    { title: 'EVICTED', align: 'right', cell: ({ evictions }) => String(evictions) },
    { title: 'AGAIN', align: 'right', cell: ({ stagedAgain }) => String(stagedAgain) },
  ])
}

function formatWaits({ waits, untilMs }: Report, totalWidth: number | undefined): string {
  const columns: readonly TableColumn<Report['waits'][number]>[] = [
    { title: 'WAITED', align: 'right', cell: ({ waitedMs }) => formatDuration(waitedMs) },
    { title: 'TASK', minWidth: 12, cell: ({ task }) => task },
    { title: 'FOR', minWidth: 10, cell: ({ dataset }) => dataset },
    { title: 'NODE', minWidth: 7, cell: ({ node }) => node },
    { title: 'AGO', align: 'right', cell: ({ atMs }) => formatSpan(untilMs - atMs) },
    { title: 'WHO', minWidth: 10, dropOrder: 1, cell: ({ parties }) => parties.join(', ') || '-' },
  ]
  return formatTable(waits.slice(0, MAX_ROWS), columns, totalWidth)
}

function formatRefusals({ refusals }: Report, totalWidth: number | undefined): string {
  return formatFirst(refusals, totalWidth, [
    { title: 'REFUSED', align: 'right', cell: ({ count }) => String(count) },
    { title: 'DATASET', minWidth: 10, cell: ({ dataset }) => dataset },
    { title: 'NODE', minWidth: 7, cell: ({ node }) => node },
    { title: 'LAST TASK', minWidth: 10, dropOrder: 1, cell: ({ lastTask }) => lastTask ?? '-' },
    { title: 'WHY', minWidth: 20, cell: ({ lastReason }) => lastReason },
  ])
}

function formatUnused({ unused, untilMs }: Report, totalWidth: number | undefined): string {
  return formatFirst(unused, totalWidth, [
    { title: 'UNUSED', minWidth: 12, cell: ({ dataset }) => dataset },
    { title: 'NODE', minWidth: 7, cell: ({ node }) => node },
    { title: 'SIZE', align: 'right', cell: ({ diskBytes }) => formatByteSize(diskBytes) },
    { title: 'SINCE', align: 'right', cell: ({ lastUsedAtMs }) => formatSpan(untilMs - lastUsedAtMs) },
    { title: 'LAST TASK', minWidth: 10, cell: ({ lastTask }) => lastTask ?? '-' },
    { title: 'LOCKED', cell: ({ isLocked }) => (isLocked ? 'yes' : '-') },
  ])
}

function formatAdvice({ advice }: Report): string {
  if (advice.length === 0) return ''
  return ['Suggestions:', ...advice.map(({ change, because }) => `  ${change}\n    ${because}`)].join('\n')
}

/** A table of the first rows, and how many more there are. */
function formatFirst<Row>(
  rows: readonly Row[],
  totalWidth: number | undefined,
  columns: readonly TableColumn<Row>[],
): string {
  const table = formatTable(rows.slice(0, MAX_ROWS), columns, totalWidth)
  return rows.length > MAX_ROWS ? `${table}\nand ${rows.length - MAX_ROWS} more: --json` : table
}
