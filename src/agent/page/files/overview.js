// The first view: figures, who waits, what is on its way, how full the nodes are.
import { h, name, visible } from './elements.js'
import { diskBar, progress, sparkline } from './figures.js'
import { ago, bytes, count, counted, percent, span } from './format.js'
import { filterField, PAGE_ROWS, pager, table } from './list.js'

/** What the first view asks for. */
export async function loadOverview({ ask, parameters }) {
  const { from, sort, filter } = parameters
  const [nodes, transfers, waits] = await Promise.all([
    ask('nodes', { from, sort, filter, count: PAGE_ROWS }),
    ask('transfers', { filter, from: parameters.transfers, count: 25 }),
    ask('waits', { filter, from: parameters.waits, count: 25 }),
  ])
  return { nodes, transfers, waits }
}

export function drawOverview(view) {
  const { data } = view
  return [
    figures(view.status),
    filterField({ id: 'words', label: 'Filter by node, dataset or task', ...view }),
    h(
      'div',
      { class: 'columns' },
      h('div', null, drawWaits(data.waits, view), drawTransfers(data.transfers, view)),
      h('div', null, drawNodes(data.nodes, view), drawShares(data.nodes)),
    ),
  ]
}

function figures(status) {
  if (status?.takenAt === undefined) return null
  const rate = status.throughput.at(-1) ?? 0
  const figure = (title, value, more) =>
    h('div', { class: 'figure' }, h('dt', null, title), h('dd', null, h('strong', null, value), ' ', more))
  return h(
    'dl',
    { class: 'figures' },
    figure(
      'Nodes',
      count(status.nodes),
      status.nodesRead < status.nodes ? `${count(status.nodesRead)} read so far` : '',
    ),
    figure('Datasets', count(status.datasets), `${counted(status.copies, 'copy', 'copies')}`),
    figure('Leases', count(status.leases), ''),
    figure(
      'On disk',
      bytes(status.oursBytes),
      `others ${bytes(status.othersBytes)}, free ${bytes(status.freeBytes)}`,
    ),
    figure('Staging', `${bytes(rate)}/s`, sparkline(status.throughput, 'staged on all nodes')),
  )
}

function drawWaits({ rows, total }, { parameters, set, now }) {
  return h(
    'section',
    { 'aria-labelledby': 'waits' },
    h('h2', { id: 'waits' }, 'Waits'),
    rows.length === 0
      ? h('p', { class: 'empty' }, 'No jobs are waiting.')
      : h(
          'ul',
          { class: 'waits' },
          rows.map((wait) =>
            h(
              'li',
              { key: `${wait.task} ${wait.dataset} ${wait.node} ${wait.kind}`, class: wait.kind },
              h(
                'p',
                null,
                h('strong', null, name(wait.task)),
                ` has waited ${span(Date.parse(now) - Date.parse(wait.since))} for `,
                link('why', { dataset: wait.dataset, node: wait.node }, name(wait.dataset)),
                ' on ',
                name(wait.node),
                wait.kind === 'room' ? ', which has no room' : '',
              ),
              wait.reason.split('\n').map((line) => h('p', { class: 'reason' }, visible(line.trim()))),
            ),
          ),
        ),
    total > rows.length || parameters.waits
      ? pager({ total, shown: rows.length, parameters, set, noun: 'waits', name: 'waits', rows: 25 })
      : null,
  )
}

function drawTransfers({ rows, total }, { parameters, set, now }) {
  const columns = [
    { title: 'Dataset', cell: ({ dataset, node }) => link('why', { dataset, node }, name(dataset)) },
    { title: 'To', cell: ({ node }) => name(node) },
    { title: 'From', cell: drawSource },
    { title: 'Done', cell: drawProgress },
    { title: 'Rate', isNumber: true, cell: drawRate },
    { title: 'Left', isNumber: true, cell: ({ leftMs }) => (leftMs === null ? '–' : span(leftMs)) },
    { title: 'For', cell: (transfer) => drawTasks(transfer, now) },
  ]
  return h(
    'section',
    { 'aria-labelledby': 'transfers' },
    h('h2', { id: 'transfers' }, 'Stagings'),
    table({
      caption: 'Datasets that are being staged',
      columns,
      rows,
      keyOf: ({ copyId }) => copyId,
      empty: 'Nothing is being staged.',
    }),
    total > rows.length || parameters.transfers
      ? pager({ total, shown: rows.length, parameters, set, noun: 'stagings', name: 'transfers', rows: 25 })
      : null,
  )
}

function drawSource({ servedBy, source }) {
  if (servedBy.length > 0) return servedBy.flatMap((node, at) => [at > 0 ? ', ' : '', name(node)])
  return source === null ? '–' : h('code', null, visible(source))
}

function drawProgress({ state, dataset, writtenBytes, contentBytes }) {
  if (state === 'reserved') return 'lists its source'
  const ratio = contentBytes > 0 ? Math.min(1, writtenBytes / contentBytes) : 0
  return [progress(ratio, `${visible(dataset)} is staged to`), ` ${percent(ratio)} of ${bytes(contentBytes)}`]
}

function drawRate({ bytesPerSecond, state }) {
  if (bytesPerSecond === null) return '–'
  return bytesPerSecond <= 0 && state === 'staging'
    ? h('strong', { class: 'bad' }, 'stalled')
    : `${bytes(bytesPerSecond)}/s`
}

function drawTasks({ stager, waitingTasks, readers = [], stagerSeenAt }, now) {
  return [
    stager === null
      ? h('strong', { class: 'bad' }, 'interrupted')
      : h(
          'span',
          { title: stagerSeenAt === null ? undefined : `seen ${ago(stagerSeenAt, now)}` },
          name(stager),
        ),
    waitingTasks.length > 0
      ? h('div', { class: 'minor' }, counted(waitingTasks.length, 'more is waiting', 'more are waiting'))
      : null,
    readers.map((reader) =>
      h(
        'div',
        { class: 'minor' },
        'read by ',
        name(reader.name || 'a reader'),
        reader.waits > 0 ? [', waits for ', name(reader.waitsFor.join(', '))] : '',
      ),
    ),
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
    { 'aria-labelledby': 'nodes' },
    h('h2', { id: 'nodes' }, 'Nodes'),
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
    { 'aria-labelledby': 'shares' },
    h('h2', { id: 'shares' }, 'Shares'),
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

/** A link to another view. */
export function link(view, parameters, ...text) {
  const query = new URLSearchParams(Object.entries(parameters).filter(([, value]) => value !== undefined))
  return h('a', { href: `#/${view}?${query}` }, ...text)
}
