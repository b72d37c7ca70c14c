// The boards of the first view: what is on its way, who holds the space, what each node did, what is used most.
import { h, name, visible } from './elements.js'
import { bars, meter, progress } from './figures.js'
import { ago, bytes, count, counted, percent, shortSpan, span } from './format.js'
import { heatPlace } from './heat.js'
import { link, pager, table } from './list.js'

const DAY_MS = 86_400_000

/** Rows of the list of stagings. */
export const STAGINGS = 12

export function card(id, title, { className = '', more, end }, ...children) {
  return h(
    'section',
    { class: `card ${className}`, key: id, 'aria-labelledby': id },
    h(
      'header',
      null,
      h('h2', { id }, title),
      more === undefined ? null : h('p', { class: 'minor' }, more),
      end === undefined ? null : h('span', { class: 'end' }, end),
    ),
    ...children,
  )
}

export function drawTransfers({ rows, total }, { parameters, set, now }) {
  const columns = [
    { title: 'Dataset', cell: ({ dataset, node }) => link('why', { dataset, node }, name(dataset)) },
    { title: 'To', cell: ({ node }) => name(node) },
    { title: 'From', cell: drawSource },
    { title: 'Done', cell: drawProgress },
    { title: 'Rate', isNumber: true, cell: drawRate },
    { title: 'Left', isNumber: true, cell: ({ leftMs }) => (leftMs === null ? '–' : span(leftMs)) },
    { title: 'For', cell: (transfer) => drawTasks(transfer, now) },
  ]
  return card(
    'transfers',
    'Stagings',
    { className: 'stagings', more: total === 0 ? undefined : `${count(total)} under way` },
    table({
      caption: 'Datasets that are being staged',
      columns,
      rows,
      keyOf: ({ copyId }) => copyId,
      empty: 'Nothing is being staged.',
    }),
    total > rows.length || parameters.transfers
      ? pager({
          total,
          shown: rows.length,
          parameters,
          set,
          noun: 'stagings',
          name: 'transfers',
          rows: STAGINGS,
        })
      : null,
  )
}

export function sourceOf({ servedBy, source }) {
  if (servedBy.length > 2) return counted(servedBy.length, 'peer')
  if (servedBy.length > 0) return servedBy.map(visible).join(', ')
  return source === null
    ? '–'
    : visible(
        source.replace(/^([a-z0-9]+):\/\/([^/]*).*$/, (_, scheme, host) =>
          host === '' ? scheme : `${scheme}://${host}`,
        ),
      )
}

function drawSource(transfer) {
  return h(
    'span',
    { title: transfer.servedBy.map(visible).join(', ') || visible(transfer.source ?? '') },
    sourceOf(transfer),
  )
}

function drawProgress({ state, stager, dataset, writtenBytes, contentBytes }) {
  if (state === 'reserved') return stager === null ? '–' : 'listing the source'
  const ratio = contentBytes > 0 ? Math.min(1, writtenBytes / contentBytes) : 0
  return [
    progress(ratio, `${visible(dataset)} is staged to`),
    ` ${percent(ratio)}`,
    h('span', { class: 'of' }, ` of ${bytes(contentBytes)}`),
  ]
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
      ? h(
          'span',
          { class: 'minor', title: waitingTasks.map(visible).join(', ') },
          ` +${count(waitingTasks.length)}`,
          h('span', { class: 'of' }, ' waiting'),
        )
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

/** Parties are `user:ada`, `account:nlp`, `group:vision`: one kind at a time, as each copy counts for one of each. */
export function drawHolders({ holders }, { parameters, set }) {
  const kindOf = ({ party }) => party?.split(':')[0]
  const kinds = [...new Set(holders.flatMap((holder) => kindOf(holder) ?? []))].sort()
  const kind = kinds.includes(parameters.by)
    ? parameters.by
    : (kinds.find((each) => each === 'user') ?? kinds[0])
  const rows = [
    ...holders.filter((holder) => holder.party !== null && kindOf(holder) === kind).slice(0, 7),
    ...holders.filter(({ party }) => party === null),
  ]
  const most = Math.max(1, ...rows.map((row) => row.bytes))
  const choose =
    kinds.length < 2
      ? undefined
      : [
          h('label', { for: 'by' }, 'by '),
          h(
            'select',
            { id: 'by', on: { change: ({ target }) => set({ by: target.value }) } },
            kinds.map((each) => h('option', { value: each, selected: each === kind }, each)),
          ),
        ]
  return card(
    'holders',
    'Who holds the space',
    { className: 'holders', end: choose },
    rows.length === 0
      ? h('p', { class: 'empty' }, 'No copies yet.')
      : h(
          'ul',
          { class: 'rows' },
          rows.map(({ party, bytes: held, usedBytes }) =>
            h(
              'li',
              { key: party ?? '' },
              party === null
                ? h('span', { class: 'minor' }, 'unknown')
                : name(party.slice(party.indexOf(':') + 1)),
              meter(
                [usedBytes / most, (held - usedBytes) / most],
                `${bytes(usedBytes)} in use, ${bytes(held - usedBytes)} idle`,
              ),
              h('span', { class: 'number' }, bytes(held)),
            ),
          ),
        ),
    rows.length === 0
      ? null
      : h(
          'p',
          { class: 'legend' },
          h('span', { class: 'key ours' }),
          'in use ',
          h('span', { class: 'key idle' }),
          'idle or locked',
        ),
  )
}

export function drawHeat(day) {
  return card(
    'heat',
    'Nodes, 24 hours',
    {
      className: 'map',
      more:
        day.totalNodes > day.nodes.length
          ? `${day.nodes.length} of ${count(day.totalNodes)}, those with most to tell`
          : undefined,
      end: link('nodes', {}, 'All nodes'),
    },
    h('p', { class: 'heat-readout', id: 'heat-readout', 'aria-hidden': 'true', isOwn: true }),
    h('div', { class: 'canvas' }, heatPlace(day)),
    heatLegend(),
  )
}

export function heatLegend({ isShort = false } = {}) {
  const mark = (className, sign, text) => [
    h('span', { class: `mark ${className}`, 'aria-hidden': 'true' }, sign),
    text,
  ]
  return h(
    'p',
    { class: 'legend' },
    [1, 3, 5].map((depth) => h('span', { class: `key heat-${depth}` })),
    isShort ? 'bytes in ' : 'bytes received ',
    mark('slow', '•', isShort ? 'waits ' : 'waited over 5 min '),
    mark('wrong', '×', 'refused '),
    mark('wrong', '!', 'damaged'),
  )
}

export function drawTop({ datasets, usesSpanMs }) {
  const columns = [
    { title: 'Dataset', cell: ({ dataset }) => link('why', { dataset }, name(dataset)) },
    {
      title: '24 hours',
      cell: ({ usesByHour, dataset }) => bars(usesByHour, `uses of ${visible(dataset)} by hour`),
    },
    { title: 'Uses', isNumber: true, cell: ({ uses }) => count(uses) },
    { title: 'Ready', isNumber: true, cell: ({ uses, hits }) => percent(hits / uses) },
    { title: 'On', isNumber: true, cell: ({ nodes }) => counted(nodes, 'node') },
  ]
  return card(
    'top',
    'Used most today',
    {
      className: 'top-datasets',
      more: usesSpanMs < DAY_MS ? `in the last ${shortSpan(usesSpanMs)}` : undefined,
    },
    table({
      caption: 'The datasets that jobs used most in the last 24 hours',
      columns,
      rows: datasets,
      keyOf: ({ dataset }) => dataset,
      empty: 'No job used a dataset in the last 24 hours.',
    }),
  )
}
