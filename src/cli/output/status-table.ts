import type { NodeStatus, StatusSnapshot } from '../../cache/status/compose-status.js'
import type { StripedLayout } from '../../cache/status/find-layouts.js'
import { listHoldings } from '../../cache/status/list-holdings.js'
import type { DatasetSummaries, DatasetSummary, StatusSummary } from '../../cache/status/summarize-status.js'
import { formatByteSize } from '../../model/byte-size.js'
import { type CopyUse, formatStripe } from '../../model/copy.js'
import { formatCount } from '../../model/format-count.js'
import { formatNodeList } from '../../model/format-node-list.js'
import { drawKeepers, drawState } from '../../tui/view/lists/copy-state.js'
import { formatHolders } from '../../tui/view/lists/dataset-rows.js'
import { formatPercent, formatShare, formatSpan } from '../../tui/view/text/format-cells.js'
import { formatTable } from './text-table.js'
import { formatTransfers, formatWaits } from './transfer-tables.js'

/** Maximum number of rows of each table in a summary: a page and a half each, 200 lines in total. */
export const MAX_ROWS = { nodes: 60, datasets: 90, layouts: 12, transfers: 12, waits: 6 } as const

/** Approximate number of lines of a status that lists every copy. */
export function countStatusLines(summary: StatusSummary, datasets: number): number {
  const { nodes, copies, layouts, transfers, waits } = summary
  return nodes.length + datasets + copies + layouts.length + transfers.length + waits.length + 12
}

/** A `dsc status` too long to read in full: the fullest nodes, the last used datasets by node, missing stripes. */
export function formatSummary(
  summary: StatusSummary,
  datasets: DatasetSummaries,
  totalWidth: number,
): string {
  const { takenAtMs, copies } = summary
  const nodes = summary.nodes.toSorted((a, b) => shareOf(b) - shareOf(a))
  const layouts = summary.layouts.filter(({ isComplete }) => !isComplete)
  const tables = [
    limit(nodes, { most: MAX_ROWS.nodes, noun: 'node' }, (shown) =>
      formatNodes(shown, takenAtMs, totalWidth),
    ),
    formatShares(nodes.slice(0, MAX_ROWS.nodes), totalWidth),
    limit(datasets.newest, { most: MAX_ROWS.datasets, total: datasets.total, noun: 'dataset' }, (shown) =>
      formatDatasets(shown, takenAtMs, totalWidth),
    ),
    limit(layouts, { most: MAX_ROWS.layouts, noun: 'striped version' }, (shown) =>
      formatLayouts(shown, totalWidth),
    ),
    limit(summary.transfers, { most: MAX_ROWS.transfers, noun: 'staging' }, (shown) =>
      formatTransfers(shown, totalWidth),
    ),
    limit(summary.waits, { most: MAX_ROWS.waits, noun: 'wait' }, (shown) =>
      formatWaits(shown, takenAtMs, totalWidth),
    ),
    `${formatCount(copies, 'copy', 'copies')} in all; --all lists each, --node and --dataset those of one`,
  ]
  return tables.filter((table) => table !== '').join('\n\n')
}

function limit<Row>(
  rows: readonly Row[],
  {
    most,
    noun,
    total = rows.length,
  }: { readonly most: number; readonly noun: string; readonly total?: number },
  format: (shown: readonly Row[]) => string,
): string {
  if (rows.length === 0) return ''
  const hidden = total - most
  const text = format(rows.slice(0, most))
  return hidden > 0 ? `${text}\nand ${formatCount(hidden, `${noun} more`, `${noun}s more`)}` : text
}

function shareOf({ usage, disk }: NodeStatus): number {
  return usage.diskBytes.used / Math.max(1, usage.diskBytes.allowed ?? disk.capacityBytes)
}

function formatDatasets(datasets: readonly DatasetSummary[], nowMs: number, totalWidth: number): string {
  const columns = [
    { title: 'DATASET', minWidth: 12 },
    { title: 'READY', align: 'right' },
    { title: 'SIZE', align: 'right' },
    { title: 'LEASES', align: 'right' },
    { title: 'USED', align: 'right' },
    { title: 'ON', minWidth: 20 },
    { title: 'NOT READY ON', minWidth: 12 },
  ] as const
  const rows = datasets.map(({ dataset, ready, unready, bytes, leases, lastUsedAtMs }) => [
    dataset,
    String(ready.length),
    formatByteSize(bytes),
    leases.toLocaleString('en-US'),
    formatSpan(nowMs - lastUsedAtMs),
    formatNodeList(ready),
    unready.length === 0 ? '-' : formatNodeList(unready),
  ])
  return formatTable(columns, rows, totalWidth)
}

/** Replaces the table of copies if there are no copies. */
export const NO_COPIES = 'No copies.'

/** The tables of `dsc status` after the table of copies. */
export function formatAfterCopies(
  {
    takenAtMs,
    nodes,
    layouts,
    transfers,
    waits,
  }: Pick<StatusSnapshot, 'takenAtMs' | 'nodes' | 'layouts' | 'transfers' | 'waits'>,
  holdings: readonly (readonly string[])[],
  totalWidth: number | undefined,
): string {
  const tables = []
  const shares = formatShares(nodes, totalWidth)
  if (shares !== '') tables.push(shares)
  if (nodes.length > 1 && holdings.length > 0) tables.push(formatHoldings(holdings, totalWidth))
  if (layouts.length > 0) tables.push(formatLayouts(layouts, totalWidth))
  if (transfers.length > 0) tables.push(formatTransfers(transfers, totalWidth))
  if (waits.length > 0) tables.push(formatWaits(waits, takenAtMs, totalWidth))
  return tables.join('\n\n')
}

/** Nodes and how full they are. */
export function formatNodes(
  nodes: readonly NodeStatus[],
  nowMs: number,
  totalWidth: number | undefined,
): string {
  if (nodes.length === 0) return ''
  const columns = [
    { title: 'NODE', minWidth: 8 },
    { title: 'DATASETS', align: 'right' },
    { title: 'SPACE', align: 'right' },
    { title: 'FULL', align: 'right' },
    { title: 'FREE', align: 'right' },
    { title: 'MIN FREE', align: 'right', dropOrder: 2 },
    { title: 'EVICTABLE', align: 'right', dropOrder: 1 },
    { title: 'SEEN', align: 'right', dropOrder: 3 },
    { title: 'OTHERS', align: 'right', dropOrder: 4 },
    { title: 'INODES', align: 'right', dropOrder: 5 },
    { title: 'CACHE', minWidth: 8, dropOrder: 6 },
  ] as const
  const rows = nodes.map(({ node, usage, disk, seenAtMs, cacheRoot }) => {
    const allowedBytes = usage.diskBytes.allowed ?? disk.capacityBytes
    return [
      node,
      usage.datasets.allowed === null
        ? String(usage.datasets.used)
        : `${usage.datasets.used}/${usage.datasets.allowed}`,
      formatShare(usage.diskBytes.used, allowedBytes),
      formatPercent(usage.diskBytes.used, allowedBytes),
      formatByteSize(usage.free.freeBytes),
      usage.free.minFreeBytes === null ? '-' : formatByteSize(usage.free.minFreeBytes),
      formatByteSize(usage.evictableBytes),
      formatSpan(nowMs - seenAtMs),
      formatByteSize(usage.onDisk.othersBytes),
      usage.inodes === null ? '-' : formatPercent(usage.inodes.used, usage.inodes.allowed ?? 0),
      cacheRoot,
    ]
  })
  return formatTable(columns, rows, totalWidth)
}

/** The guaranteed shares of each node, and their use. Empty if no node has shares. */
function formatShares(nodes: readonly NodeStatus[], totalWidth: number | undefined): string {
  const columns = [
    { title: 'SHARE', minWidth: 12 },
    { title: 'NODE', minWidth: 8 },
    { title: 'OF NODE', align: 'right' },
    { title: 'GUARANTEED', align: 'right' },
    { title: 'USED', align: 'right' },
    { title: 'BORROWED', align: 'right' },
    { title: 'DATASETS', align: 'right' },
  ] as const
  const rows = nodes.flatMap(({ node, usage }) =>
    usage.shares.map((standing) => [
      standing.party ?? '(no share)',
      node,
      `${standing.percent}%`,
      formatByteSize(standing.guaranteedBytes),
      formatByteSize(standing.usedBytes),
      standing.borrowedBytes === 0 ? '-' : formatByteSize(standing.borrowedBytes),
      String(standing.usedDatasets),
    ]),
  )
  return rows.length === 0 ? '' : formatTable(columns, rows, totalWidth)
}

/** A copy's row in the table of `copyColumns`. */
export function copyCells(
  copy: CopyUse,
  { hasStripes, nowMs }: { readonly hasStripes: boolean; readonly nowMs: number },
): readonly string[] {
  return [
    copy.dataset,
    copy.node,
    drawState(copy).text,
    ...(hasStripes ? [copy.stripe ? formatStripe(copy.stripe) : '-'] : []),
    formatByteSize(copy.chargedBytes),
    drawKeepers(copy).text,
    formatSpan(nowMs - copy.lastUsedAtMs),
    copy.lastTask ?? '-',
    copy.version?.slice(0, 12) ?? '-',
  ]
}

/** Nodes × datasets: who holds what. `*` means in use; a percentage, how much is there so far. */
function formatHoldings(rows: readonly (readonly string[])[], totalWidth: number | undefined): string {
  const columns = [
    { title: 'HELD', minWidth: 12 },
    { title: 'NODES', align: 'right' },
    { title: 'BY', minWidth: 20 },
  ] as const
  return formatTable(columns, rows, totalWidth)
}

/** The rows, one per dataset in `copies`, of the table of who holds what. */
export function holdingCells(copies: readonly CopyUse[]): readonly (readonly string[])[] {
  return listHoldings(copies).map(({ dataset, nodes }) => [
    dataset,
    String(nodes.filter(({ state }) => state === 'ready').length),
    formatHolders(nodes),
  ])
}

function formatLayouts(layouts: readonly StripedLayout[], totalWidth: number | undefined): string {
  const columns = [
    { title: 'STRIPED', minWidth: 12 },
    { title: 'READY', align: 'right' },
    { title: 'NODES', minWidth: 12 },
    { title: 'MISSING', minWidth: 10 },
    { title: 'VERSION', minWidth: 12, dropOrder: 1 },
  ] as const
  const rows = layouts.map(({ dataset, stripes, nodes, version }) => {
    const missing = stripes.filter(({ state }) => state === 'missing')
    return [
      dataset,
      `${stripes.filter(({ state }) => state === 'ready').length}/${nodes.length}`,
      formatNodeList(nodes),
      missing.length === 0
        ? '-'
        : missing.map(({ index, node }) => `${index + 1}/${nodes.length} on ${node}`).join(', '),
      version.slice(0, 12),
    ]
  })
  return formatTable(columns, rows, totalWidth)
}
