import { type EgressPrice, priceSaved } from '../../cache/accounting/describe-report.js'
import type { Report } from '../../cache/accounting/read-report.js'
import { formatByteSize } from '../../model/byte-size.js'
import { formatDuration } from '../../model/duration.js'
import { formatCount } from '../../model/format-count.js'
import { formatPercent, formatSpan } from '../../tui/view/text/format-cells.js'
import { formatTable } from './text-table.js'

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
  if (datasets.length === 0) return ''
  const columns = [
    { title: 'DATASET', minWidth: 12 },
    { title: 'USES', align: 'right' },
    { title: 'HITS', align: 'right' },
    { title: 'READ', align: 'right' },
    { title: 'FROM STORE', align: 'right' },
    { title: 'FROM NODES', align: 'right' },
    { title: 'WAITED', align: 'right' },
    { title: 'EVICTED', align: 'right' },
    { title: 'AGAIN', align: 'right' },
  ] as const
  const rows = datasets
    .slice(0, MAX_ROWS)
    .map((each) => [
      each.dataset,
      String(each.uses),
      formatPercent(each.hits, each.uses),
      formatByteSize(each.readBytes),
      formatByteSize(each.storeBytes),
      formatByteSize(each.peerBytes),
      formatDuration(each.waitedMs),
      String(each.evictions),
      String(each.stagedAgain),
    ])
  return withRest(formatTable(columns, rows, totalWidth), datasets.length)
}

function formatWaits({ waits, untilMs }: Report, totalWidth: number | undefined): string {
  if (waits.length === 0) return ''
  const columns = [
    { title: 'WAITED', align: 'right' },
    { title: 'TASK', minWidth: 12 },
    { title: 'FOR', minWidth: 10 },
    { title: 'NODE', minWidth: 7 },
    { title: 'AGO', align: 'right' },
    { title: 'WHO', minWidth: 10, dropOrder: 1 },
  ] as const
  const rows = waits
    .slice(0, MAX_ROWS)
    .map(({ waitedMs, task, dataset, node, atMs, parties }) => [
      formatDuration(waitedMs),
      task,
      dataset,
      node,
      formatSpan(untilMs - atMs),
      parties.join(', ') || '-',
    ])
  return formatTable(columns, rows, totalWidth)
}

function formatRefusals({ refusals }: Report, totalWidth: number | undefined): string {
  if (refusals.length === 0) return ''
  const columns = [
    { title: 'REFUSED', align: 'right' },
    { title: 'DATASET', minWidth: 10 },
    { title: 'NODE', minWidth: 7 },
    { title: 'LAST TASK', minWidth: 10, dropOrder: 1 },
    { title: 'WHY', minWidth: 20 },
  ] as const
  const rows = refusals
    .slice(0, MAX_ROWS)
    .map(({ count, dataset, node, lastTask, lastReason }) => [
      String(count),
      dataset,
      node,
      lastTask ?? '-',
      lastReason,
    ])
  return withRest(formatTable(columns, rows, totalWidth), refusals.length)
}

function formatUnused({ unused, untilMs }: Report, totalWidth: number | undefined): string {
  if (unused.length === 0) return ''
  const columns = [
    { title: 'UNUSED', minWidth: 12 },
    { title: 'NODE', minWidth: 7 },
    { title: 'SIZE', align: 'right' },
    { title: 'SINCE', align: 'right' },
    { title: 'LAST TASK', minWidth: 10 },
    { title: 'LOCKED' },
  ] as const
  const rows = unused
    .slice(0, MAX_ROWS)
    .map(({ dataset, node, diskBytes, lastUsedAtMs, lastTask, isLocked }) => [
      dataset,
      node,
      formatByteSize(diskBytes),
      formatSpan(untilMs - lastUsedAtMs),
      lastTask ?? '-',
      isLocked ? 'yes' : '-',
    ])
  return withRest(formatTable(columns, rows, totalWidth), unused.length)
}

function formatAdvice({ advice }: Report): string {
  if (advice.length === 0) return ''
  return ['Suggestions:', ...advice.map(({ change, because }) => `  ${change}\n    ${because}`)].join('\n')
}

function withRest(table: string, rows: number): string {
  return rows > MAX_ROWS ? `${table}\nand ${rows - MAX_ROWS} more: --json` : table
}
