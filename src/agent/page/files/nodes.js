// Every node against its limits, and who is guaranteed how much of it.
import { h, name, visible } from './elements.js'
import { diskBar, sparkline } from './figures.js'
import { ago, bytes, count, percent } from './format.js'
import { filterField, link, PAGE_ROWS, pager, table } from './list.js'

export function loadNodes({ ask, parameters: { from, sort, filter } }) {
  return ask('nodes', { from, sort, filter, count: PAGE_ROWS })
}

export function drawNodesView(view) {
  return [
    h(
      'div',
      { class: 'filters' },
      filterField({ id: 'words', label: 'Filter nodes', known: 'nodes', ...view }),
    ),
    drawNodes(view.data, view),
    drawShares(view.data),
  ]
}

function drawNodes({ rows, total }, { parameters, set, now }) {
  const columns = [
    { title: 'Node', sort: 'node', cell: drawNode },
    {
      title: 'Datasets',
      sort: 'datasets',
      isNumber: true,
      cell: ({ usage }) => ofLimit(usage.datasets, count),
    },
    {
      title: 'Copies take',
      sort: 'space',
      isNumber: true,
      cell: ({ usage }) => ofLimit(usage.diskBytes, bytes),
    },
    { title: 'Disk', sort: 'disk', cell: drawDisk },
    {
      title: 'Evictable',
      sort: 'evictable',
      isNumber: true,
      cell: ({ usage }) => bytes(usage.evictableBytes),
    },
    { title: 'Stages', cell: drawNodeRate },
    { title: 'Seen', sort: 'seen', isNumber: true, cell: ({ seenAt }) => ago(seenAt, now) },
  ]
  return h(
    'section',
    { class: 'card', 'aria-labelledby': 'nodes' },
    h('header', null, h('h2', { id: 'nodes' }, 'Nodes')),
    h(
      'p',
      { class: 'legend' },
      h('span', { class: 'key ours' }),
      ' ours ',
      h('span', { class: 'key others' }),
      ' others’ ',
      h('span', { class: 'key free' }),
      ' free ',
      h('span', { class: 'key limit' }),
      ' what the policy lets copies take',
    ),
    table({
      caption: 'Nodes against their policy',
      columns,
      rows,
      keyOf: ({ node }) => node,
      parameters,
      set,
      empty: 'No node matches.',
    }),
    pager({ total, shown: rows.length, parameters, set, noun: 'nodes' }),
  )
}

/** Who is guaranteed how much of the nodes above, and takes how much; nothing where no policy has shares. */
function drawShares({ rows }) {
  const shares = rows.flatMap(({ node, usage }) => usage.shares.map((share) => ({ node, ...share })))
  if (shares.length === 0) return null
  const columns = [
    { title: 'Share', cell: ({ party }) => (party === null ? 'nobody’s share' : name(party)) },
    { title: 'Node', cell: ({ node }) => link('copies', { node }, name(node)) },
    { title: 'Guaranteed', isNumber: true, cell: ({ guaranteedBytes }) => bytes(guaranteedBytes) },
    { title: 'Takes', isNumber: true, cell: ({ usedBytes }) => bytes(usedBytes) },
    {
      title: 'Borrowed',
      isNumber: true,
      cell: ({ borrowedBytes }) => (borrowedBytes === 0 ? '–' : bytes(borrowedBytes)),
    },
    { title: 'Datasets', isNumber: true, cell: ({ usedDatasets }) => count(usedDatasets) },
  ]
  return h(
    'section',
    { class: 'card', 'aria-labelledby': 'shares' },
    h('header', null, h('h2', { id: 'shares' }, 'Shares')),
    table({
      caption: 'Who is guaranteed how much of these nodes, and takes how much',
      columns,
      rows: shares,
      keyOf: ({ node, party }) => `${node} ${party}`,
    }),
  )
}

function ofLimit({ used, allowed }, format) {
  return allowed === null ? format(used) : `${format(used)} of ${format(allowed)}`
}

function drawNode({ node, cacheRoot }) {
  return [
    link('copies', { node }, name(node)),
    h('div', { class: 'minor' }, h('code', null, visible(cacheRoot))),
  ]
}

function drawDisk(node) {
  const { freeBytes, minFreeBytes } = node.usage.free
  const { inodes } = node.usage
  const isLow = minFreeBytes !== null && freeBytes < minFreeBytes
  return [
    diskBar(node),
    h(
      'div',
      { class: isLow ? 'bad' : 'minor' },
      `${bytes(freeBytes)} free`,
      minFreeBytes === null ? '' : ` (policy keeps ${bytes(minFreeBytes)})`,
      inodes === null ? '' : `, ${percent(inodes.used / Math.max(1, inodes.allowed))} of inodes used`,
    ),
  ]
}

function drawNodeRate({ node, bytesPerSecond, throughput }) {
  if (throughput.length === 0) return '–'
  return [
    sparkline(throughput, `staged on ${visible(node)}`),
    h('div', { class: 'minor' }, `${bytes(bytesPerSecond)}/s`),
  ]
}
