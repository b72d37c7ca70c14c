import type { NodeStatus, StatusSnapshot } from '../../../cache/status/compose-status.js'
import type { NodeUsage } from '../../../cache/status/node-usage.js'
import type { Throughput } from '../../../cache/status/throughput.js'
import { formatByteSize } from '../../../model/byte-size.js'
import { formatPercent, formatShare, formatSpan } from '../text/format-cells.js'
import { type Sign, splitBar } from '../text/glyphs.js'
import { type Colour, span } from '../text/styled-line.js'
import {
  type Cell,
  type DrawContext,
  type ListChoice,
  type ListRows,
  matchesFilter,
  widthOf,
} from './list-rows.js'
import { type SortValues, sortRows } from './sort-rows.js'

const COLUMNS = [
  { title: 'STATE', width: 9 },
  { title: 'SPACE', width: 34, minWidth: 30, grow: 3 },
  { title: 'FREE', width: 8, align: 'right' },
  { title: 'MIN FREE', width: 8, align: 'right', dropOrder: 6 },
  { title: 'IDLE', width: 8, align: 'right', dropOrder: 4 },
  { title: 'DATASETS', width: 8, align: 'right', dropOrder: 2 },
  { title: 'RATE', width: 10, align: 'right', dropOrder: 3 },
  { title: 'INODES', width: 6, align: 'right', dropOrder: 8 },
  { title: 'SEEN', width: 4, align: 'right', dropOrder: 1 },
  { title: 'CACHE', width: 12, minWidth: 8, grow: 1, dropOrder: 7 },
] as const

const SPACE_TEXT_CELLS = 17

const sortValues = ({ byNode }: Throughput): SortValues<NodeStatus> => ({
  NODE: ({ node }) => node,
  STATE: ({ usage }) => (isShort(usage) ? 0 : 1),
  SPACE: ({ usage }) => usage.diskBytes.used,
  FREE: ({ usage }) => usage.free.freeBytes,
  'MIN FREE': ({ usage }) => usage.free.minFreeBytes ?? 0,
  IDLE: ({ usage }) => usage.evictableBytes,
  DATASETS: ({ usage }) => usage.datasets.used,
  RATE: ({ node }) => byNode.get(node)?.at(-1) ?? 0,
  INODES: ({ usage }) => (usage.inodes ? usage.inodes.used / Math.max(1, usage.inodes.allowed ?? 0) : 0),
  SEEN: ({ seenAtMs }) => seenAtMs,
  CACHE: ({ cacheRoot }) => cacheRoot,
})

/** Nodes with their usage against each limit of their policy. */
export function listNodeRows(snapshot: StatusSnapshot, { filter, sort, throughput }: ListChoice): ListRows {
  const refused = new Set(snapshot.waits.filter(({ kind }) => kind === 'room').map(({ node }) => node))
  const staging = new Set(snapshot.transfers.filter(({ stager }) => stager !== null).map(({ node }) => node))
  const stateOf = (node: NodeStatus): NodeState => {
    if (isShort(node.usage)) return 'short'
    if (refused.has(node.node)) return 'refused'
    return staging.has(node.node) ? 'staging' : 'fine'
  }
  const found = snapshot.nodes.filter((node) =>
    matchesFilter(filter, [node.node, node.cacheRoot, stateOf(node)]),
  )
  const values = sortValues(throughput)
  const nodes = sortRows(found, sort, values)
  const name = widthOf(snapshot.nodes, (node) => node.node, [4, 40])
  return {
    list: 'nodes',
    columns: [{ title: 'NODE', width: name, minWidth: Math.min(name, 16) }, ...COLUMNS],
    sortable: Object.keys(values),
    keys: nodes.map((node) => node.node),
    total: snapshot.nodes.length,
    copyIdAt: () => undefined,
    scopeAt: (index) => {
      const node = nodes[index]?.node
      return node === undefined ? undefined : { node, label: node, opens: 'copies' as const }
    },
    drawAt: (index, widths, context) => drawNode(nodes[index]!, stateOf(nodes[index]!), widths, context),
    emptyText: filter === '' ? 'No node is known yet' : 'No node matches the filter',
  }
}

/** `refused`: a job waits for room here. `short`: others filled the disk beyond `minFree`. */
type NodeState = 'fine' | 'staging' | 'refused' | 'short'

const LOOKS: Readonly<Record<NodeState, { readonly sign: Sign; readonly color: Colour }>> = {
  fine: { sign: 'used', color: 'green' },
  staging: { sign: 'staging', color: 'cyan' },
  refused: { sign: 'wrong', color: 'red' },
  short: { sign: 'wrong', color: 'red' },
}

function isShort({ free }: NodeUsage): boolean {
  return free.minFreeBytes !== null && free.freeBytes < free.minFreeBytes
}

function drawNode(
  node: NodeStatus,
  state: NodeState,
  widths: readonly number[],
  context: DrawContext,
): readonly Cell[] {
  const { usage } = node
  const { datasets, free } = usage
  const { sign, color } = LOOKS[state]
  const rate = context.throughput.byNode.get(node.node)?.at(-1)
  return [
    span(node.node, { isBold: true }),
    span(`${context.glyphs.signs[sign]} ${state}`, { color }),
    drawSpace(node, widths[2] ?? 24, context),
    span(formatByteSize(free.freeBytes), isShort(usage) ? { color: 'red' } : {}),
    span(free.minFreeBytes === null ? '-' : formatByteSize(free.minFreeBytes)),
    span(formatByteSize(usage.evictableBytes)),
    span(
      datasets.allowed === null
        ? datasets.used.toLocaleString('en-US')
        : `${datasets.used}/${datasets.allowed}`,
    ),
    rate ? span(`${formatByteSize(rate)}/s`, { color: 'cyan' }) : span('-', { isDim: true }),
    span(usage.inodes === null ? '-' : formatPercent(usage.inodes.used, usage.inodes.allowed ?? 0)),
    span(formatSpan(context.nowMs - node.seenAtMs), { isDim: true }),
    span(node.cacheRoot, { isDim: true }),
  ]
}

/** The disk: copies in eighths, then files of others, dim, then free. The numbers are those of the policy. */
function drawSpace({ usage, disk }: NodeStatus, width: number, { glyphs }: DrawContext): Cell {
  const { diskBytes, onDisk } = usage
  const text = formatShare(diskBytes.used, diskBytes.allowed ?? disk.capacityBytes)
  const color = isShort(usage) ? ('red' as const) : ('blue' as const)
  const cells = width - Math.max(SPACE_TEXT_CELLS, text.length) - 1
  if (cells < 3) return span(text, { color })
  const { filled, empty } = splitBar(onDisk.oursBytes / Math.max(1, disk.capacityBytes), cells, glyphs)
  const others = Math.min(empty, Math.round((cells * onDisk.othersBytes) / Math.max(1, disk.capacityBytes)))
  return [
    span(filled, { color }),
    span(glyphs.others.repeat(others) + glyphs.empty.repeat(empty - others), { isDim: true }),
    span(` ${text}`),
  ]
}
