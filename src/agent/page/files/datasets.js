// Datasets × nodes. One stop for the Tab key, arrows inside.
import { h, name, visible } from './elements.js'
import { bytes, count, counted, percent } from './format.js'
import { filterField, link, pager } from './list.js'

const ROWS = 40

/** As many nodes as fit beside the names. */
function countColumns() {
  return Math.max(4, Math.min(100, Math.floor((window.innerWidth - 330) / 34)))
}

export async function loadDatasets({ ask, parameters }) {
  const columns = countColumns()
  const { filter, from, sort, nodes } = parameters
  const data = await ask('matrix', {
    filter,
    from,
    sort,
    count: ROWS,
    'node-filter': nodes,
    'node-from': parameters.node,
    'node-count': columns,
  })
  return { ...data, columns }
}

export function drawDatasets(view) {
  const { data, parameters, set } = view
  const { rows, nodes, total, totalNodes, columns } = data
  return [
    h('h2', null, 'Datasets on nodes'),
    h(
      'div',
      { class: 'filters' },
      filterField({ id: 'datasets', label: 'Datasets', known: 'datasets', ...view }),
      filterField({ id: 'nodes', label: 'Nodes', name: 'nodes', resets: 'node', known: 'nodes', ...view }),
      sortField(parameters, set),
    ),
    h(
      'p',
      { class: 'legend' },
      h('span', { class: 'cell ready used' }, '●'),
      ' ready, in use ',
      h('span', { class: 'cell ready' }, '■'),
      ' ready ',
      h('span', { class: 'cell ready' }, '▣'),
      ' locked ',
      h('span', { class: 'cell staging' }, '43'),
      ' % staged ',
      h('span', { class: 'cell evicting' }, '×'),
      ' evicting',
    ),
    rows.length === 0 ? h('p', { class: 'empty' }, 'No dataset matches.') : grid(rows, nodes),
    pager({ total, shown: rows.length, parameters, set, noun: 'datasets', rows: ROWS }),
    pager({
      total: totalNodes,
      shown: nodes.length,
      parameters,
      set,
      noun: 'nodes',
      name: 'node',
      rows: columns,
    }),
  ]
}

function sortField(parameters, set) {
  const orders = [
    ['dataset', 'name'],
    ['-size', 'size'],
    ['-ready', 'nodes'],
    ['-leases', 'leases'],
    ['-used', 'last use'],
  ]
  const current = parameters.sort ?? 'dataset'
  return h(
    'p',
    { class: 'filter', key: 'sort' },
    h('label', { for: 'sort' }, 'Sorted by'),
    h(
      'select',
      { id: 'sort', on: { change: ({ target }) => set({ sort: target.value, from: undefined }) } },
      orders.map(([value, text]) => h('option', { value, selected: value === current }, text)),
    ),
  )
}

function grid(rows, nodes) {
  return h(
    'div',
    { class: 'scroll' },
    h(
      'table',
      {
        role: 'grid',
        class: 'matrix',
        'aria-label': 'datasets by node',
        on: { keydown: moveInGrid, focusin: stopHere },
      },
      h(
        'thead',
        { role: 'rowgroup' },
        h(
          'tr',
          { role: 'row' },
          h('th', { role: 'columnheader', scope: 'col' }, 'Dataset'),
          h('th', { role: 'columnheader', scope: 'col', class: 'number' }, 'Size'),
          nodes.map((node) =>
            h(
              'th',
              { role: 'columnheader', scope: 'col', class: 'upright', key: node },
              h('span', null, name(node)),
            ),
          ),
        ),
      ),
      h(
        'tbody',
        { role: 'rowgroup' },
        rows.map((row, at) =>
          h(
            'tr',
            { role: 'row', key: row.dataset },
            h(
              'th',
              { role: 'rowheader', scope: 'row' },
              link('why', { dataset: row.dataset }, name(row.dataset)),
            ),
            h(
              'td',
              { role: 'gridcell', class: 'number' },
              bytes(row.diskBytes),
              h('span', { class: 'hidden' }, ` on ${counted(row.ready, 'node')}`),
            ),
            row.cells.map((cell, column) =>
              drawCell(cell, { row, node: nodes[column], isStop: at === 0 && column === 0 }),
            ),
          ),
        ),
      ),
    ),
  )
}

function drawCell(cell, { row, node, isStop }) {
  const common = { role: 'gridcell', key: node, tabindex: isStop ? 0 : -1 }
  if (cell === null)
    return h('td', { ...common, 'aria-label': `${visible(row.dataset)}: not on ${visible(node)}` })
  const { state, isLocked, referenceCount, fillRatio } = cell
  const isUsed = referenceCount > 0
  const words = [
    state === 'staging' ? `staged to ${percent(fillRatio)}` : state,
    isUsed ? counted(referenceCount, 'lease') : 'no lease',
    isLocked ? 'locked' : '',
    bytes(cell.diskBytes),
  ]
  return h(
    'td',
    {
      ...common,
      class: `cell ${state}${isUsed ? ' used' : ''}`,
      'aria-label': `${visible(row.dataset)} on ${visible(node)}: ${words.filter((word) => word !== '').join(', ')}`,
      title: words.filter((word) => word !== '').join(', '),
      on: {
        click: () => open(row.dataset, node),
        keydown: (event) => event.key === 'Enter' && open(row.dataset, node),
      },
    },
    signOf(cell),
  )
}

function signOf({ state, isLocked, referenceCount, fillRatio }) {
  if (state === 'evicting') return '×'
  if (state === 'reserved') return '…'
  if (state === 'staging') return count(Math.min(99, Math.floor(100 * fillRatio)))
  if (isLocked) return '▣'
  return referenceCount > 0 ? '●' : '■'
}

function open(dataset, node) {
  location.hash = `#/why?${new URLSearchParams({ dataset, node })}`
}

const STEPS = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }

function moveInGrid(event) {
  const cell = event.target.closest('td')
  const step = STEPS[event.key]
  if (!cell || !step) return
  event.preventDefault()
  const row = cell.parentElement
  const lines = [...row.parentElement.children]
  const line = lines[lines.indexOf(row) + step[0]] ?? row
  const next = line.children[[...row.children].indexOf(cell) + step[1]]
  if (next?.matches('td[tabindex]')) next.focus()
}

/** Where the focus is, the Tab key comes back to. */
function stopHere({ target, currentTarget }) {
  if (!target.matches('td[tabindex]')) return
  for (const stop of currentTarget.querySelectorAll('td[tabindex="0"]')) stop.tabIndex = -1
  target.tabIndex = 0
}
