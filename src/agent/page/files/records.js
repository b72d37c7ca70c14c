// What the record holds, row by row: copies, leases, history, and why a dataset is where it is.
import { h, name, visible } from './elements.js'
import { ago, bytes, count, counted, moment, span, zone } from './format.js'
import { link, onward, table } from './list.js'

/** Fields that choose rows by dataset and node; they say so when one leaves them or presses Enter. */
function chooser({ parameters, set }, fields = ['dataset', 'node']) {
  return h(
    'form',
    {
      class: 'filters',
      on: {
        submit: (event) => {
          event.preventDefault()
          const given = new FormData(event.target)
          set({
            ...Object.fromEntries(fields.map((field) => [field, given.get(field).trim() || undefined])),
            after: undefined,
          })
        },
      },
    },
    fields.map((field) =>
      h(
        'p',
        { class: 'filter', key: field },
        h('label', { for: field }, field === 'dataset' ? 'Dataset' : 'Node'),
        h('input', {
          id: field,
          name: field,
          list: `known-${field}s`,
          autocomplete: 'off',
          spellcheck: 'false',
          value: parameters[field] ?? '',
        }),
      ),
    ),
    h('p', { class: 'filter' }, h('button', { type: 'submit' }, 'Show')),
  )
}

export function loadCopies({ ask, parameters: { dataset, node, after } }) {
  return ask('copies', { dataset, node, after })
}

/** `ready, stripe 2/3, locked`. */
function describeState({ state, stripe, locked }) {
  const part = stripe ? `, stripe ${stripe.index + 1}/${stripe.count}` : ''
  return `${state}${part}${locked ? ', locked' : ''}`
}

export function drawCopies(view) {
  const { data, parameters, set, now } = view
  const columns = [
    { title: 'Dataset', cell: ({ dataset, node }) => link('why', { dataset, node }, name(dataset)) },
    { title: 'Node', cell: ({ node }) => link('copies', { node }, name(node)) },
    { title: 'State', cell: describeState },
    { title: 'Size', isNumber: true, cell: ({ diskBytes }) => bytes(diskBytes) },
    {
      title: 'Leases',
      isNumber: true,
      cell: ({ referenceCount, copyId }) =>
        referenceCount === 0 ? '0' : link('leases', { copy: copyId }, count(referenceCount)),
    },
    { title: 'Used', isNumber: true, cell: ({ lastUsedAt }) => ago(lastUsedAt, now) },
    { title: 'Last task', cell: ({ lastTask }) => (lastTask === null ? '–' : name(lastTask)) },
    { title: 'Files', isNumber: true, cell: ({ files }) => count(files) },
    { title: 'Version', cell: ({ version }) => h('code', null, version?.slice(0, 12) ?? '–') },
  ]
  const last = data.rows.at(-1)
  return [
    h('h2', null, 'Copies'),
    chooser(view),
    table({
      caption: 'Copies of datasets on nodes',
      columns,
      rows: data.rows,
      keyOf: ({ copyId }) => copyId,
      empty: 'No copy matches.',
    }),
    onward({
      isLast: data.isLast,
      after: last && JSON.stringify([last.dataset, last.node, last.createdAt, last.copyId]),
      parameters,
      set,
      text: 'More copies',
    }),
  ]
}

export function loadLeases({ ask, parameters: { dataset, node, copy, after } }) {
  return ask('leases', { dataset, node, copy, after })
}

export function drawLeases(view) {
  const { data, parameters, set } = view
  const last = data.rows.at(-1)
  return [
    h('h2', null, 'Who holds what'),
    chooser(view),
    leaseTable(data.rows, view),
    onward({
      isLast: data.isLast,
      after: last && JSON.stringify([last.createdAt, last.leaseId]),
      parameters,
      set,
      text: 'Newer leases',
    }),
  ]
}

function leaseTable(rows, { now }) {
  const columns = [
    { title: 'Task', cell: ({ task }) => name(task) },
    { title: 'Dataset', cell: ({ dataset, node }) => link('why', { dataset, node }, name(dataset)) },
    { title: 'Node', cell: ({ node }) => name(node) },
    { title: 'For', cell: ({ purpose }) => purpose },
    { title: 'Holder', cell: ({ holder }) => name(describeHolder(holder)) },
    { title: 'Since', isNumber: true, cell: ({ createdAt }) => ago(createdAt, now) },
    { title: 'Until', cell: ({ expiresAt, holder }) => describeEnd(expiresAt, holder, now) },
  ]
  return table({
    caption: 'Leases',
    columns,
    rows,
    keyOf: ({ leaseId }) => leaseId,
    empty: 'No lease matches.',
  })
}

function describeHolder(holder) {
  switch (holder.kind) {
    case 'process':
      return `process ${holder.pid} on ${holder.host}`
    case 'slurm':
      return `Slurm job ${holder.jobId}`
    case 'pod':
      return `pod ${holder.uid}`
    default:
      return 'no process: ends by itself'
  }
}

function describeEnd(expiresAt, holder, now) {
  if (expiresAt === null) return holder.kind === 'ttl' ? 'it is released' : 'its holder ends'
  const leftMs = Date.parse(expiresAt) - Date.parse(now)
  return leftMs <= 0 ? `expired ${span(-leftMs)} ago` : `${moment(expiresAt, now)}, in ${span(leftMs)}`
}

export function loadHistory({ ask, parameters: { dataset, node, after } }) {
  return ask('history', { dataset, node, before: after })
}

export function drawHistory(view) {
  const { data, parameters, set } = view
  return [
    h('h2', null, 'History'),
    chooser(view),
    eventTable(data.rows, view),
    onward({ isLast: data.isLast, after: data.rows.at(-1)?.sequence, parameters, set, text: 'Older' }),
  ]
}

function eventTable(rows, { now }) {
  const columns = [
    { title: `When, ${zone(now)}`, cell: ({ at }) => h('time', { datetime: at }, moment(at, now)) },
    { title: 'What', cell: ({ kind }) => kind.replaceAll('-', ' ') },
    { title: 'Dataset', cell: ({ dataset }) => link('why', { dataset }, name(dataset)) },
    { title: 'Node', cell: ({ node }) => name(node) },
    { title: 'Task', cell: ({ task }) => (task === null ? '–' : name(task)) },
    {
      title: 'Because',
      cell: ({ reason }) => reason.split('\n').map((line) => h('div', null, visible(line))),
    },
  ]
  return table({
    caption: 'What happened, newest first',
    columns,
    rows,
    keyOf: ({ sequence }) => sequence,
    empty: 'Nothing happened.',
  })
}

export async function loadWhy({ ask, parameters: { dataset, node } }) {
  if (dataset === undefined) return undefined
  const [why, history] = await Promise.all([ask('why', { dataset, node }), ask('history', { dataset, node })])
  return { why, history }
}

export function drawWhy(view) {
  const { data, now } = view
  const head = [h('h2', null, 'Why'), chooser(view)]
  if (data === undefined)
    return [head, h('p', { class: 'empty' }, 'Which dataset? Its name says why it is where it is.')]
  const { why, history } = data
  return [
    head,
    why.copies.length === 0
      ? h(
          'p',
          null,
          name(why.dataset),
          ' is on no node',
          view.parameters.node ? [' called ', name(view.parameters.node)] : '',
          '.',
        )
      : null,
    why.copies.map((copy) => drawCopy(copy, view)),
    [
      ['Last refused', why.lastRefused],
      ['Last failed', why.lastFailed],
      ['Last evicted', why.lastEvicted],
    ].map(([title, event]) => event && drawEvent(title, event, now)),
    why.nextVictims.length > 0
      ? h(
          'section',
          null,
          h('h3', null, 'Would be evicted next'),
          h(
            'ul',
            null,
            why.nextVictims.map(({ copyId, dataset, node, diskBytes, reason }) =>
              h(
                'li',
                { key: copyId },
                name(dataset),
                ` (${bytes(diskBytes)}) on `,
                name(node),
                `: ${visible(reason)}`,
              ),
            ),
          ),
        )
      : null,
    h('h3', null, 'History'),
    eventTable(history.rows, view),
  ]
}

function drawCopy(copy, view) {
  const { now } = view
  const kept = copy.keptBy.length === 0 ? 'nothing: it may go when room is needed' : copy.keptBy.join(', ')
  const fact = (title, ...value) => [h('dt', null, title), h('dd', null, ...value)]
  return h(
    'section',
    { key: copy.copyId, class: 'copy' },
    h('h3', null, name(copy.dataset), ' on ', name(copy.node)),
    h(
      'dl',
      { class: 'facts' },
      fact(
        'State',
        copy.state,
        copy.isLocked ? `, locked by ${visible(copy.lock.by)}: ${visible(copy.lock.reason)}` : '',
      ),
      fact('Kept by', visible(kept)),
      copy.evictionRank
        ? fact(
            'Evicted',
            `as number ${count(copy.evictionRank.rank)} of ${count(copy.evictionRank.candidates)}: ${visible(copy.evictionRank.reason)}`,
          )
        : null,
      copy.hereBecause
        ? fact('Here because', `${visible(copy.hereBecause.reason)} (${ago(copy.hereBecause.at, now)})`)
        : null,
      fact('Size', `${bytes(copy.diskBytes)} in ${counted(copy.files, 'file')}`),
      fact(
        'Last used',
        `${ago(copy.lastUsedAt, now)}${copy.lastTask === null ? '' : ` by ${visible(copy.lastTask)}`}`,
      ),
      fact('Path', h('code', null, visible(copy.path))),
      fact('Source', copy.source === null ? 'none is known' : h('code', null, visible(copy.source))),
    ),
    copy.leases.length > 0 ? leaseTable(copy.leases, view) : null,
  )
}

function drawEvent(title, event, now) {
  return h(
    'section',
    { key: title },
    h('h3', null, title),
    h(
      'p',
      null,
      `${ago(event.at, now)} on `,
      name(event.node),
      event.task === null ? '' : [', for ', name(event.task)],
    ),
    event.reason.split('\n').map((line) => h('p', { class: 'reason' }, visible(line.trim()))),
  )
}
