import type { NodeStatus, StatusSnapshot } from '../../../cache/status/compose-status.js'
import { formatByteSize } from '../../../model/byte-size.js'
import { formatShare } from '../text/format-cells.js'
import { splitBar } from '../text/glyphs.js'
import { span } from '../text/styled-line.js'
import {
  type Cell,
  type DrawContext,
  type ListChoice,
  type ListRows,
  matchesFilter,
  widthOf,
} from './list-rows.js'
import { type SortValues, sortRows } from './sort-rows.js'

/** A share of one node. */
type NodeShare = NodeStatus['usage']['shares'][number] & Pick<NodeStatus, 'node'>

const SORT_VALUES: SortValues<NodeShare> = {
  SHARE: nameOf,
  NODE: ({ node }) => node,
  USED: ({ usedBytes }) => usedBytes,
  'OF NODE': ({ percent }) => percent,
  BORROWED: ({ borrowedBytes }) => borrowedBytes,
  DATASETS: ({ usedDatasets }) => usedDatasets,
}

const TEXT_CELLS = 17

/** Each node's guaranteed shares, and how much of them is used. */
export function listShareRows(snapshot: StatusSnapshot, { filter, sort }: ListChoice): ListRows {
  const all = snapshot.nodes.flatMap(({ node, usage }) => usage.shares.map((share) => ({ node, ...share })))
  const found = all.filter((share) => matchesFilter(filter, [nameOf(share), share.node]))
  const shares = sortRows(found, sort, SORT_VALUES)
  const name = widthOf(all, nameOf, [5, 40])
  const node = widthOf(all, (share) => share.node, [4, 24])
  return {
    list: 'shares',
    columns: [
      { title: 'SHARE', width: name, minWidth: Math.min(name, 12) },
      { title: 'NODE', width: node, minWidth: Math.min(node, 8) },
      { title: 'USED', width: 30, minWidth: TEXT_CELLS, grow: 1 },
      { title: 'OF NODE', width: 7, align: 'right', dropOrder: 2 },
      { title: 'BORROWED', width: 8, align: 'right', dropOrder: 1 },
      { title: 'DATASETS', width: 8, align: 'right', dropOrder: 3 },
    ],
    sortable: Object.keys(SORT_VALUES),
    keys: shares.map((share) => `${share.node} ${nameOf(share)}`),
    total: all.length,
    copyIdAt: () => undefined,
    scopeAt: (index) => {
      const share = shares[index]
      return share && { node: share.node, label: share.node, opens: 'copies' as const }
    },
    drawAt: (index, widths, context) => drawShare(shares[index]!, widths[2] ?? TEXT_CELLS, context),
    emptyText:
      filter === '' ? 'No node has shares (cache.shares in dsc.yaml)' : 'No share matches the filter',
  }
}

function nameOf({ party }: Pick<NodeShare, 'party'>): string {
  return party ?? '(no share)'
}

function drawShare(share: NodeShare, width: number, { glyphs }: DrawContext): readonly Cell[] {
  const { guaranteedBytes, usedBytes, borrowedBytes, percent } = share
  const isSure = guaranteedBytes > 0
  const text = isSure ? formatShare(usedBytes, guaranteedBytes) : formatByteSize(usedBytes)
  const barWidth = Math.min(32, width - Math.max(TEXT_CELLS, text.length) - 1)
  const color = borrowedBytes > 0 ? ('yellow' as const) : ('blue' as const)
  const { filled, empty } = splitBar(isSure ? usedBytes / guaranteedBytes : 0, Math.max(0, barWidth), glyphs)
  return [
    span(nameOf(share), share.party === null ? { isDim: true } : {}),
    span(share.node),
    barWidth < 3 || !isSure
      ? span(text)
      : [span(filled, { color }), span(glyphs.empty.repeat(empty), { isDim: true }), span(` ${text}`)],
    span(`${percent}%`),
    borrowedBytes === 0 ? span('-', { isDim: true }) : span(formatByteSize(borrowedBytes), { color }),
    span(share.usedDatasets.toLocaleString('en-US')),
  ]
}
