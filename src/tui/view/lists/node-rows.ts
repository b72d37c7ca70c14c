import type { NodeStatus, StatusSnapshot } from '../../../cache/status/compose-status.js'
import type { NodeUsage } from '../../../cache/status/node-usage.js'
import type { Throughput } from '../../../cache/status/throughput.js'
import { formatByteSize } from '../../../model/byte-size.js'
import { formatPercent, formatShare, formatSpan } from '../text/format-cells.js'
import { drawBar, drawSharedBar, drawSpark } from '../text/glyphs.js'
import { type Colour, type Span, span } from '../text/styled-line.js'
import { type DrawContext, type ListChoice, type ListRows, matchesFilter, widthOf } from './list-rows.js'
import { type ListSort, type SortValues, sortRows } from './sort-rows.js'

const COLUMNS = [
  { title: 'DATASETS', width: 18, minWidth: 14, grow: 1 },
  { title: 'SPACE', width: 30, minWidth: 24, grow: 3 },
  { title: 'FREE', width: 8, align: 'right' },
  { title: 'MIN FREE', width: 8, align: 'right', dropOrder: 4 },
  { title: 'EVICTABLE', width: 9, align: 'right', dropOrder: 3 },
  { title: 'INODES', width: 6, align: 'right', dropOrder: 6 },
  { title: 'SEEN', width: 4, align: 'right', dropOrder: 2 },
  { title: 'CACHE', width: 12, minWidth: 8, grow: 2, dropOrder: 5 },
  { title: 'STAGES', width: 22, dropOrder: 7 },
] as const

const SPACE_TEXT_CELLS = 17
const SPARK_CELLS = 10

/** The fullest nodes first. */
export const FULLEST: ListSort = { column: 'FULL', isReversed: false }

const sortValues = ({ byNode }: Throughput): SortValues<NodeStatus> => ({
  FULL: ({ usage }) => findPressure(usage),
  NODE: ({ node }) => node,
  DATASETS: ({ usage }) => usage.datasets.used,
  SPACE: ({ usage }) => usage.diskBytes.used,
  FREE: ({ usage }) => usage.free.freeBytes,
  'MIN FREE': ({ usage }) => usage.free.minFreeBytes ?? 0,
  EVICTABLE: ({ usage }) => usage.evictableBytes,
  INODES: ({ usage }) => (usage.inodes ? usage.inodes.used / Math.max(1, usage.inodes.allowed ?? 0) : 0),
  SEEN: ({ seenAtMs }) => seenAtMs,
  CACHE: ({ cacheRoot }) => cacheRoot,
  STAGES: ({ node }) => byNode.get(node)?.at(-1) ?? 0,
})

/** Nodes with their usage against each limit of their policy. */
export function listNodeRows(snapshot: StatusSnapshot, { filter, sort, throughput }: ListChoice): ListRows {
  const found = snapshot.nodes.filter((node) => matchesFilter(filter, [node.node, node.cacheRoot]))
  const values = sortValues(throughput)
  const nodes = sortRows(found, sort, values)
  const name = widthOf(
    snapshot.nodes.values().map((node) => node.node),
    4,
    40,
  )
  return {
    tab: 'nodes',
    columns: [{ title: 'NODE', width: name, minWidth: Math.min(name, 16) }, ...COLUMNS],
    sortable: Object.keys(values),
    keys: nodes.map((node) => node.node),
    total: snapshot.nodes.length,
    copyIdAt: () => undefined,
    scopeAt: (index) => {
      const node = nodes[index]?.node
      return node === undefined ? undefined : { node, label: node }
    },
    drawAt: (index, widths, context) => drawNode(nodes[index]!, widths, context),
    emptyText: filter === '' ? 'No node is known yet' : 'No node matches the filter',
  }
}

/** How close the node is to its tightest limit, 0 (empty) to 1 (nothing more fits). */
function findPressure(usage: NodeUsage): number {
  const shares = [usage.datasets, usage.diskBytes].map(({ used, allowed }) =>
    allowed === null || allowed === 0 ? 0 : used / allowed,
  )
  if (usage.free.minFreeBytes !== null && usage.free.freeBytes <= usage.free.minFreeBytes) shares.push(1)
  return Math.min(1, Math.max(...shares))
}

function drawNode(node: NodeStatus, widths: readonly number[], context: DrawContext): readonly Span[] {
  const { usage } = node
  const { datasets, free } = usage
  const isFreeLow = free.minFreeBytes !== null && free.freeBytes < free.minFreeBytes
  return [
    span(node.node, { isBold: true }),
    drawUsage({ ...datasets, text: formatDatasets(datasets), textWidth: 7 }, widths[1] ?? 14, context),
    drawSpace(node, widths[2] ?? 24, context),
    span(formatByteSize(free.freeBytes), isFreeLow ? { color: 'red' } : {}),
    span(free.minFreeBytes === null ? '-' : formatByteSize(free.minFreeBytes)),
    span(formatByteSize(usage.evictableBytes), { isDim: true }),
    span(usage.inodes === null ? '-' : formatPercent(usage.inodes.used, usage.inodes.allowed ?? 0)),
    span(formatSpan(context.nowMs - node.seenAtMs), { isDim: true }),
    span(node.cacheRoot, { isDim: true }),
    drawThroughput(node.node, context),
  ]
}

/** The node's download rate over the last minute, and its current rate. */
function drawThroughput(node: string, { throughput, glyphs }: DrawContext): Span {
  const rates = throughput.byNode.get(node)
  if (!rates) return span('-', { isDim: true })
  return span(`${drawSpark(rates, SPARK_CELLS, glyphs)} ${formatByteSize(rates.at(-1) ?? 0)}/s`, {
    color: 'cyan',
  })
}

function formatDatasets({ used, allowed }: NodeUsage['datasets']): string {
  return allowed === null ? used.toLocaleString('en-US') : `${used}/${allowed}`
}

/** The disk: space of copies, of other files, and free. The numbers are those of the policy. */
function drawSpace({ usage, disk }: NodeStatus, width: number, context: DrawContext): Span {
  const { diskBytes, free } = usage
  const allowed = diskBytes.allowed ?? disk.capacityBytes
  const text = formatShare(diskBytes.used, allowed)
  const own = usage.onDisk.oursBytes / Math.max(1, disk.capacityBytes)
  const others = usage.onDisk.othersBytes / Math.max(1, disk.capacityBytes)
  const isFreeLow = free.minFreeBytes !== null && free.freeBytes < free.minFreeBytes
  const color = isFreeLow ? 'red' : colourOf(Math.max(diskBytes.used / Math.max(1, allowed), own + others))
  const barWidth = Math.min(32, width - Math.max(SPACE_TEXT_CELLS, text.length) - 1)
  if (barWidth < 3) return span(text, { color })
  return span(`${drawSharedBar({ own, others }, barWidth, context.glyphs)} ${text}`, { color })
}

/** A bar and its numbers; without a limit only the number. The numbers keep their width, the bar shrinks. */
function drawUsage(
  usage: {
    readonly used: number
    readonly allowed: number | null
    readonly text: string
    readonly textWidth: number
  },
  width: number,
  context: DrawContext,
): Span {
  const { used, allowed, text, textWidth } = usage
  if (allowed === null || allowed <= 0) return span(text)
  const barWidth = Math.min(32, width - Math.max(textWidth, text.length) - 1)
  if (barWidth < 3) return span(text, { color: colourOf(used / allowed) })
  return span(`${drawBar(used / allowed, barWidth, context.glyphs)} ${text}`, {
    color: colourOf(used / allowed),
  })
}

/** Never red: a full cache makes room when it is needed. */
function colourOf(ratio: number): Colour {
  return ratio >= 0.85 ? 'yellow' : 'green'
}
