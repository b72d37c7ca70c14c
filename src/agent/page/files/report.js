// The report: what staging saved, who waited for what, what was refused, what nobody uses, what to change.
import { h, name, visible } from './elements.js'
import { ago, bytes, count, counted, percent, span } from './format.js'
import { link, table } from './list.js'

export function loadReport({ ask, parameters: { since, node, price } }) {
  return ask('report', { since, node, price })
}

export function drawReport(view) {
  const { data } = view
  return [
    h('h2', null, 'Report'),
    drawQuestion(view),
    data.uses + data.refusals.length === 0
      ? h('p', { class: 'empty' }, 'Nobody used a dataset in this time.')
      : drawSums(data),
    drawAdvice(data),
    drawDatasets(data),
    drawJobs(data),
    drawWaits(data),
    drawRefusals(data),
    drawUnused(data),
  ]
}

const FIELDS = [
  { name: 'since', label: 'The last', hint: '7d' },
  { name: 'node', label: 'Node', hint: 'all' },
  { name: 'price', label: 'Price of a GB from the store', hint: '0.09' },
]

function drawQuestion({ parameters, set }) {
  const submit = (event) => {
    event.preventDefault()
    const given = new FormData(event.target)
    set(Object.fromEntries(FIELDS.map((field) => [field.name, given.get(field.name).trim() || undefined])))
  }
  return h(
    'form',
    { class: 'filters', on: { submit } },
    FIELDS.map((field) =>
      h(
        'p',
        { class: 'filter', key: field.name },
        h('label', { for: field.name }, field.label),
        h('input', {
          id: field.name,
          name: field.name,
          list: field.name === 'node' ? 'known-nodes' : undefined,
          autocomplete: 'off',
          spellcheck: 'false',
          placeholder: field.hint,
          value: parameters[field.name] ?? '',
        }),
      ),
    ),
    h('p', { class: 'filter' }, h('button', { type: 'submit' }, 'Show')),
  )
}

function drawSums(report) {
  const { uses, hitRate, readBytes, storeBytes, peerBytes, savedBytes, savedMoney, waitedMs } = report
  const figure = (title, value, more = '') =>
    h('div', { class: 'figure' }, h('dt', null, title), h('dd', null, h('strong', null, value), ' ', more))
  const money =
    savedMoney === null ? '' : `, ${savedMoney.toFixed(2)} at ${report.egressPricePerGigabyte} for each GB`
  return h(
    'dl',
    { class: 'figures' },
    figure('Uses', count(uses), hitRate === null ? '' : `${percent(hitRate)} found the dataset ready`),
    figure('Read', bytes(readBytes), 'each use one reading of the whole'),
    figure('Fetched', bytes(storeBytes), `from the store, ${bytes(peerBytes)} from other nodes`),
    figure('Saved', bytes(savedBytes), `that the store did not send${money}`),
    figure('Waited', span(waitedMs), 'by all jobs'),
  )
}

function drawAdvice({ advice }) {
  if (advice.length === 0) return null
  return section('Suggestions', [
    h(
      'ul',
      { class: 'advice' },
      advice.map(({ change, because }) =>
        h(
          'li',
          { key: change },
          h('code', null, visible(change)),
          h('p', { class: 'reason' }, visible(because)),
        ),
      ),
    ),
  ])
}

function drawDatasets({ datasets, totals }) {
  const number = (title, cell) => ({ title, isNumber: true, cell })
  const columns = [
    { title: 'Dataset', cell: ({ dataset }) => link('why', { dataset }, name(dataset)) },
    number('Uses', ({ uses }) => count(uses)),
    number('Hits', ({ hits, uses }) => (uses === 0 ? '–' : percent(hits / uses))),
    number('Read', (row) => bytes(row.readBytes)),
    number('From the store', (row) => bytes(row.storeBytes)),
    number('From nodes', (row) => bytes(row.peerBytes)),
    number('Waited', (row) => span(row.waitedMs)),
    number('Evicted', ({ evictions }) => count(evictions)),
    number('Again', ({ stagedAgain }) => count(stagedAgain)),
  ]
  return section('Datasets', [
    table({
      caption: 'Datasets that were used or staged',
      columns,
      rows: datasets,
      keyOf: ({ dataset }) => dataset,
      empty: 'None was used or staged.',
    }),
    drawRest(datasets.length, totals.datasets),
  ])
}

/** How the GPUs of jobs spent their time. */
function drawJobs({ jobs, totals }) {
  const columns = [
    { title: 'Task', cell: ({ task }) => name(task) },
    { title: 'GPUs', isNumber: true, cell: ({ gpus }) => count(gpus) },
    { title: 'Waited', cell: ({ said }) => visible(said) },
  ]
  return section('How long GPUs waited', [
    table({
      caption: 'Jobs whose GPUs waited longest',
      columns,
      rows: jobs,
      keyOf: ({ task }) => task,
      empty: 'No job used a dataset.',
    }),
    drawRest(jobs.length, totals.jobs),
  ])
}

function drawWaits({ waits, until }) {
  const columns = [
    { title: 'Task', cell: ({ task }) => name(task) },
    { title: 'Waited', isNumber: true, cell: ({ waitedMs }) => span(waitedMs) },
    { title: 'For', cell: ({ dataset, node }) => link('why', { dataset, node }, name(dataset)) },
    { title: 'Node', cell: ({ node }) => name(node) },
    { title: 'When', isNumber: true, cell: ({ at }) => ago(at, until) },
    { title: 'Who', cell: ({ parties }) => (parties.length === 0 ? '–' : name(parties.join(', '))) },
  ]
  return section('Who waited longest', [
    table({
      caption: 'The longest waits',
      columns,
      rows: waits,
      keyOf: ({ task, dataset, node, at }) => `${task} ${dataset} ${node} ${at}`,
      empty: 'Nobody waited.',
    }),
  ])
}

function drawRefusals({ refusals, totals }) {
  const columns = [
    { title: 'Dataset', cell: ({ dataset, node }) => link('why', { dataset, node }, name(dataset)) },
    { title: 'Node', cell: ({ node }) => name(node) },
    { title: 'Refused', isNumber: true, cell: (row) => counted(row.count, 'time') },
    { title: 'Last task', cell: ({ lastTask }) => (lastTask === null ? '–' : name(lastTask)) },
    { title: 'Why', cell: ({ lastReason }) => visible(lastReason) },
  ]
  return section('Refused', [
    table({
      caption: 'What the policy refused',
      columns,
      rows: refusals,
      keyOf: ({ dataset, node, limits }) => `${dataset} ${node} ${limits.join(' ')}`,
      empty: 'Nothing was refused.',
    }),
    drawRest(refusals.length, totals.refusals),
  ])
}

function drawUnused({ unused, totals, until }) {
  const columns = [
    { title: 'Dataset', cell: ({ dataset, node }) => link('why', { dataset, node }, name(dataset)) },
    { title: 'Node', cell: ({ node }) => link('copies', { node }, name(node)) },
    { title: 'Size', isNumber: true, cell: (row) => bytes(row.diskBytes) },
    { title: 'Last used', isNumber: true, cell: ({ lastUsedAt }) => ago(lastUsedAt, until) },
    { title: 'Last task', cell: ({ lastTask }) => (lastTask === null ? '–' : name(lastTask)) },
    { title: 'Locked', cell: ({ isLocked }) => (isLocked ? 'yes' : 'no') },
  ]
  return section('Used by nobody', [
    table({
      caption: 'Copies that nobody used in this time',
      columns,
      rows: unused,
      keyOf: ({ dataset, node }) => `${dataset} ${node}`,
      empty: 'Every copy was used.',
    }),
    drawRest(unused.length, totals.unused),
  ])
}

function drawRest(shown, total) {
  return total > shown
    ? h('p', { class: 'pager' }, `and ${count(total - shown)} more: dsc report --json`)
    : null
}

function section(title, children) {
  return h('section', { key: title, 'aria-label': title }, h('h3', null, title), children)
}
