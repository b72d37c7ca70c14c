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
import { formatTable, type TableColumn } from './text-table.js'
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
  const columns: readonly TableColumn<DatasetSummary>[] = [
    { title: 'DATASET', minWidth: 12, cell: ({ dataset }) => dataset },
    { title: 'READY', align: 'right', cell: ({ ready }) => String(ready.length) },
    { title: 'SIZE', align: 'right', cell: ({ bytes }) => formatByteSize(bytes) },
    { title: 'LEASES', align: 'right', cell: ({ leases }) => leases.toLocaleString('en-US') },
    { title: 'USED', align: 'right', cell: ({ lastUsedAtMs }) => formatSpan(nowMs - lastUsedAtMs) },
    { title: 'ON', minWidth: 20, cell: ({ ready }) => formatNodeList(ready) },
    { title: 'NOT READY ON', minWidth: 12, cell: ({ unready }) => formatNodeList(unready) || '-' },
  ]
  return formatTable(datasets, columns, totalWidth)
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
  holdings: readonly HeldDataset[],
  totalWidth: number | undefined,
): string {
  const tables = [
    formatShares(nodes, totalWidth),
    nodes.length > 1 ? formatTable(holdings, HELD_COLUMNS, totalWidth) : '',
    formatLayouts(layouts, totalWidth),
    transfers.length > 0 ? formatTransfers(transfers, totalWidth) : '',
    formatWaits(waits, takenAtMs, totalWidth),
  ]
  return tables.filter((table) => table !== '').join('\n\n')
}

/** Nodes and how full they are. */
export function formatNodes(
  nodes: readonly NodeStatus[],
  nowMs: number,
  totalWidth: number | undefined,
): string {
  const allowedOf = ({ usage, disk }: NodeStatus) => usage.diskBytes.allowed ?? disk.capacityBytes
  const columns: readonly TableColumn<NodeStatus>[] = [
    { title: 'NODE', minWidth: 8, cell: ({ node }) => node },
    { title: 'DATASETS', align: 'right', cell: ({ usage }) => formatPart(usage.datasets) },
    {
      title: 'SPACE',
      align: 'right',
      cell: (node) => formatShare(node.usage.diskBytes.used, allowedOf(node)),
    },
    {
      title: 'FULL',
      align: 'right',
      cell: (node) => formatPercent(node.usage.diskBytes.used, allowedOf(node)),
    },
    { title: 'FREE', align: 'right', cell: ({ usage }) => formatByteSize(usage.free.freeBytes) },
    {
      ...{ title: 'MIN FREE', align: 'right', dropOrder: 2 },
      cell: ({ usage: { free } }) => (free.minFreeBytes === null ? '-' : formatByteSize(free.minFreeBytes)),
    },
    {
      ...{ title: 'EVICTABLE', align: 'right', dropOrder: 1 },
      cell: ({ usage }) => formatByteSize(usage.evictableBytes),
    },
    { title: 'SEEN', align: 'right', dropOrder: 3, cell: ({ seenAtMs }) => formatSpan(nowMs - seenAtMs) },
    {
      ...{ title: 'OTHERS', align: 'right', dropOrder: 4 },
      cell: ({ usage }) => formatByteSize(usage.onDisk.othersBytes),
    },
    {
      ...{ title: 'INODES', align: 'right', dropOrder: 5 },
      cell: ({ usage: { inodes } }) =>
        inodes === null ? '-' : formatPercent(inodes.used, inodes.allowed ?? 0),
    },
    { title: 'CACHE', minWidth: 8, dropOrder: 6, cell: ({ cacheRoot }) => cacheRoot },
  ]
  return formatTable(nodes, columns, totalWidth)
}

function formatPart({ used, allowed }: { readonly used: number; readonly allowed: number | null }): string {
  return allowed === null ? String(used) : `${used}/${allowed}`
}

/** The guaranteed shares of each node, and their use. Empty if no node has shares. */
function formatShares(nodes: readonly NodeStatus[], totalWidth: number | undefined): string {
  const standings = nodes.flatMap(({ node, usage }) =>
    usage.shares.map((standing) => ({ node, ...standing })),
  )
  const columns: readonly TableColumn<(typeof standings)[number]>[] = [
    { title: 'SHARE', minWidth: 12, cell: ({ party }) => party ?? '(no share)' },
    { title: 'NODE', minWidth: 8, cell: ({ node }) => node },
    { title: 'OF NODE', align: 'right', cell: ({ percent }) => `${percent}%` },
    { title: 'GUARANTEED', align: 'right', cell: ({ guaranteedBytes }) => formatByteSize(guaranteedBytes) },
    { title: 'USED', align: 'right', cell: ({ usedBytes }) => formatByteSize(usedBytes) },
    {
      ...{ title: 'BORROWED', align: 'right' },
      cell: ({ borrowedBytes }) => (borrowedBytes === 0 ? '-' : formatByteSize(borrowedBytes)),
    },
    { title: 'DATASETS', align: 'right', cell: ({ usedDatasets }) => String(usedDatasets) },
  ]
  return formatTable(standings, columns, totalWidth)
}

/** The columns of the table of copies. */
export function copyColumns(nowMs: number): readonly TableColumn<CopyUse>[] {
  return [
    { title: 'DATASET', minWidth: 12, cell: ({ dataset }) => dataset },
    { title: 'NODE', minWidth: 7, dropOrder: 2, cell: ({ node }) => node },
    { title: 'STATE', cell: (copy) => drawState(copy).text },
    {
      ...{ title: 'STRIPE', align: 'right', isLeftOutWhereEmpty: true },
      cell: ({ stripe }) => (stripe ? formatStripe(stripe) : '-'),
    },
    { title: 'SIZE', align: 'right', cell: ({ chargedBytes }) => formatByteSize(chargedBytes) },
    { title: 'KEPT BY', cell: (copy) => drawKeepers(copy).text },
    { title: 'USED', align: 'right', cell: ({ lastUsedAtMs }) => formatSpan(nowMs - lastUsedAtMs) },
    { title: 'LAST TASK', minWidth: 10, dropOrder: 3, cell: ({ lastTask }) => lastTask ?? '-' },
    { title: 'VERSION', minWidth: 12, dropOrder: 4, cell: ({ version }) => version?.slice(0, 12) ?? '-' },
  ]
}

/** A dataset, the number of nodes that have it, and their names: `*` means in use; a percentage, how much is there. */
export interface HeldDataset {
  readonly dataset: string
  readonly ready: number
  readonly by: string
}

const HELD_COLUMNS: readonly TableColumn<HeldDataset>[] = [
  { title: 'HELD', minWidth: 12, cell: ({ dataset }) => dataset },
  { title: 'NODES', align: 'right', cell: ({ ready }) => String(ready) },
  { title: 'BY', minWidth: 20, cell: ({ by }) => by },
]

/** The datasets in `copies`, each with the nodes that hold it. */
export function listHeld(copies: readonly CopyUse[]): readonly HeldDataset[] {
  return listHoldings(copies).map(({ dataset, nodes }) => {
    return { dataset, ready: nodes.filter(({ state }) => state === 'ready').length, by: formatHolders(nodes) }
  })
}

function formatLayouts(layouts: readonly StripedLayout[], totalWidth: number | undefined): string {
  const columns: readonly TableColumn<StripedLayout>[] = [
    { title: 'STRIPED', minWidth: 12, cell: ({ dataset }) => dataset },
    {
      ...{ title: 'READY', align: 'right' },
      cell: ({ stripes, nodes }) =>
        `${stripes.filter(({ state }) => state === 'ready').length}/${nodes.length}`,
    },
    { title: 'NODES', minWidth: 12, cell: ({ nodes }) => formatNodeList(nodes) },
    { title: 'MISSING', minWidth: 10, cell: formatMissing },
    { title: 'VERSION', minWidth: 12, dropOrder: 1, cell: ({ version }) => version.slice(0, 12) },
  ]
  return formatTable(layouts, columns, totalWidth)
}

function formatMissing({ stripes, nodes }: StripedLayout): string {
  const missing = stripes.filter(({ state }) => state === 'missing')
  return missing.map(({ index, node }) => `${index + 1}/${nodes.length} on ${node}`).join(', ') || '-'
}
