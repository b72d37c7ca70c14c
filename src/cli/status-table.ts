import { redactUrl } from '../failure/redact.js'
import { formatByteSize } from '../model/byte-size.js'
import { type CopyUse, formatStripe } from '../model/copy.js'
import { formatHolder, isLeaseLive, type PlacedLease } from '../model/lease.js'
import type { NodeStatus, StatusSnapshot, TransferStatus } from '../stage/plan/compose-status.js'
import type { StripedLayout } from '../stage/plan/find-layouts.js'
import { listHoldings } from '../stage/plan/list-holdings.js'
import { drawKeepers, drawState } from '../tui/view/copy-rows.js'
import { formatPercent, formatShare, formatSpan } from '../tui/view/format-cells.js'
import { formatWay } from '../tui/view/transfer-rows.js'
import { formatTable } from './text-table.js'

/** `dsc status` without a terminal of its own: nodes, copies and downloads, one table each. */
export function formatStatus(snapshot: StatusSnapshot, totalWidth: number | undefined): string {
  const tables = [formatNodes(snapshot.nodes, snapshot.takenAtMs, totalWidth)]
  tables.push(
    snapshot.copies.length === 0
      ? 'No copies.'
      : formatCopies(snapshot.copies, snapshot.takenAtMs, totalWidth),
  )
  if (snapshot.nodes.length > 1 && snapshot.copies.length > 0) {
    tables.push(formatHoldings(snapshot.copies, totalWidth))
  }
  if (snapshot.layouts.length > 0) tables.push(formatLayouts(snapshot.layouts, totalWidth))
  if (snapshot.transfers.length > 0) tables.push(formatTransfers(snapshot.transfers, totalWidth))
  return tables.filter((table) => table !== '').join('\n\n')
}

function formatNodes(nodes: readonly NodeStatus[], nowMs: number, totalWidth: number | undefined): string {
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
  ] as const
  const rows = nodes.map(({ node, usage, disk, seenAtMs }) => {
    const allowedBytes = usage.bytes.allowed ?? disk.capacityBytes
    return [
      node,
      usage.datasets.allowed === null
        ? String(usage.datasets.used)
        : `${usage.datasets.used}/${usage.datasets.allowed}`,
      formatShare(usage.bytes.used, allowedBytes),
      formatPercent(usage.bytes.used, allowedBytes),
      formatByteSize(usage.free.bytes),
      usage.free.minBytes === null ? '-' : formatByteSize(usage.free.minBytes),
      formatByteSize(usage.evictableBytes),
      formatSpan(nowMs - seenAtMs),
    ]
  })
  return formatTable(columns, rows, totalWidth)
}

function formatCopies(copies: readonly CopyUse[], nowMs: number, totalWidth: number | undefined): string {
  const hasStripes = copies.some(({ stripe }) => stripe !== undefined)
  const columns = [
    { title: 'DATASET', minWidth: 12 },
    { title: 'NODE', minWidth: 7, dropOrder: 2 },
    { title: 'STATE' },
    ...(hasStripes ? [{ title: 'STRIPE', align: 'right' } as const] : []),
    { title: 'SIZE', align: 'right' },
    { title: 'KEPT BY' },
    { title: 'USED', align: 'right' },
    { title: 'LAST TASK', minWidth: 10, dropOrder: 3 },
    { title: 'VERSION', minWidth: 12, dropOrder: 4 },
  ] as const
  const rows = copies.map((copy) => [
    copy.dataset,
    copy.node,
    drawState(copy).text,
    ...(hasStripes ? [copy.stripe ? formatStripe(copy.stripe) : '-'] : []),
    formatByteSize(copy.chargedBytes),
    drawKeepers(copy).text,
    formatSpan(nowMs - copy.lastUsedAtMs),
    copy.lastTask ?? '-',
    copy.version?.slice(0, 12) ?? '-',
  ])
  return formatTable(columns, rows, totalWidth)
}

/** Nodes × datasets: who holds what. `*` is in use, a share is what is there so far. */
function formatHoldings(copies: readonly CopyUse[], totalWidth: number | undefined): string {
  const columns = [
    { title: 'HELD', minWidth: 12 },
    { title: 'NODES', align: 'right' },
    { title: 'BY', minWidth: 20 },
  ] as const
  const rows = listHoldings(copies).map(({ dataset, nodes }) => [
    dataset,
    String(nodes.filter(({ state }) => state === 'ready').length),
    nodes
      .map(({ node, state, fillRatio, referenceCount }) => {
        if (state === 'ready') return `${node}${referenceCount > 0 ? '*' : ''}`
        return `${node} (${state === 'staging' ? formatPercent(fillRatio, 1) : state})`
      })
      .join(', '),
  ])
  return formatTable(columns, rows, totalWidth)
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
      nodes.join(' '),
      missing.length === 0
        ? '-'
        : missing.map(({ index, node }) => `${index + 1}/${nodes.length} on ${node}`).join(', '),
      version.slice(0, 12),
    ]
  })
  return formatTable(columns, rows, totalWidth)
}

function formatTransfers(transfers: readonly TransferStatus[], totalWidth: number | undefined): string {
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
    transfer.state === 'reserved' ? 'listing' : formatShare(transfer.writtenBytes, transfer.chargedBytes),
    transfer.state === 'reserved' ? '-' : formatPercent(transfer.writtenBytes, transfer.chargedBytes),
    transfer.stager ?? 'nobody',
    String(transfer.waitingTasks.length),
    transfer.source === null ? '-' : redactUrl(transfer.source),
  ])
  return formatTable(columns, rows, totalWidth)
}

/** A lease, and why it counts no more. */
export interface ShownLease extends PlacedLease {
  readonly staleReason: string | null
}

/** `dsc leases`: who keeps what, until when. */
export function formatLeases(
  leases: readonly ShownLease[],
  nowMs: number,
  totalWidth: number | undefined,
): string {
  const hasStale = leases.some((lease) => lease.staleReason !== null)
  const columns = [
    { title: 'TASK', minWidth: 12 },
    { title: 'DATASET', minWidth: 10 },
    { title: 'NODE', minWidth: 7, dropOrder: 2 },
    { title: 'FOR' },
    { title: 'SINCE', align: 'right' },
    { title: 'ENDS IN', align: 'right' },
    { title: 'HOLDER', minWidth: 12, dropOrder: 3 },
    ...(hasStale ? [{ title: 'STALE BECAUSE', minWidth: 14, dropOrder: 1 } as const] : []),
  ] as const
  const rows = leases.map((lease) => [
    lease.task,
    lease.dataset,
    lease.node,
    lease.purpose,
    formatSpan(nowMs - lease.createdAtMs),
    lease.expiresAtMs === null
      ? '-'
      : isLeaseLive(lease, nowMs)
        ? formatSpan(lease.expiresAtMs - nowMs)
        : 'expired',
    lease.holder.kind === 'ttl' ? 'ttl' : formatHolder(lease),
    ...(hasStale ? [lease.staleReason ?? '-'] : []),
  ])
  return formatTable(columns, rows, totalWidth)
}
