// The page: which view is shown is in the address, behind `#/`; what it shows comes from the agent, again and again.
import { ask, listen, NotAllowed, showAs, takeLink } from './connection.js'
import { drawDatasets, loadDatasets } from './datasets.js'
import { h, name, patch, visible } from './elements.js'
import { moment } from './format.js'
import { drawOverview, loadOverview } from './overview.js'
import {
  drawCopies,
  drawHistory,
  drawLeases,
  drawWhy,
  loadCopies,
  loadHistory,
  loadLeases,
  loadWhy,
} from './records.js'
import { drawReport, loadReport } from './report.js'

const VIEWS = {
  overview: { title: 'Overview', load: loadOverview, draw: drawOverview },
  datasets: { title: 'Datasets', load: loadDatasets, draw: drawDatasets },
  copies: { title: 'Copies', load: loadCopies, draw: drawCopies },
  leases: { title: 'Leases', load: loadLeases, draw: drawLeases },
  history: { title: 'History', load: loadHistory, draw: drawHistory },
  report: { title: 'Report', load: loadReport, draw: drawReport },
  why: { title: 'Why', load: loadWhy, draw: drawWhy },
}

/** What the agent said last. */
let status
/** The view that is shown, with its data. */
let shown
/** Why nothing new comes; undefined: it comes. */
let problem
let loading

function place() {
  const [path, query = ''] = location.hash.replace(/^#\/?/, '').split('?', 2)
  const view = Object.hasOwn(VIEWS, path) ? path : 'overview'
  return { view, parameters: Object.fromEntries(new URLSearchParams(query)) }
}

/** Changes parameters of the view; undefined takes one out. */
function set(changes) {
  const { view, parameters } = place()
  const merged = Object.entries({ ...parameters, ...changes }).filter(([, value]) => value !== undefined)
  location.hash = `#/${view}?${new URLSearchParams(merged)}`
}

/** Asks for what the view shows. A newer call takes the place of one under way; a repeated one waits for it. */
async function load({ isNew }) {
  if (loading && !isNew) return
  loading?.abort()
  const own = new AbortController()
  loading = own
  const { view, parameters } = place()
  try {
    const data = await VIEWS[view].load({
      ask: (what, asked) => ask(what, asked, own.signal),
      parameters,
    })
    if (loading !== own) return
    const isOther = shown?.view !== view
    shown = { view, parameters, data }
    draw()
    if (isOther && isNew) document.querySelector('main').focus()
  } catch (error) {
    if (loading !== own || own.signal.aborted) return
    fail(error)
  } finally {
    if (loading === own) loading = undefined
  }
}

function draw() {
  document.title = `${shown ? VIEWS[shown.view].title : ''} · dsc ${visible(status?.node ?? '')}`
  const current = place().view
  patch(
    document.querySelector('#views'),
    Object.entries(VIEWS).map(([key, { title }]) =>
      h('a', { href: `#/${key}`, key, 'aria-current': key === current ? 'page' : undefined }, title),
    ),
  )
  patch(document.querySelector('#place'), status ? ['on ', name(status.node)] : [])
  drawConnection()
  if (!shown || problem instanceof NotAllowed) return
  const now = status?.takenAt ?? new Date().toISOString()
  const main = document.querySelector('main')
  main.dataset.view = shown.view
  patch(main, VIEWS[shown.view].draw({ ...shown, status, now, set }))
}

/** Told only when it changes: a screen reader says it aloud. */
function drawConnection() {
  const element = document.querySelector('#connection')
  const bad = problem?.message ?? status?.problem ?? undefined
  const text =
    bad === undefined
      ? status
        ? 'live'
        : 'connecting'
      : `nothing new${status?.takenAt ? ` since ${moment(status.takenAt)}` : ''}: ${visible(bad)}`
  element.className = bad === undefined ? '' : 'bad'
  if (element.textContent !== text) element.textContent = text
}

function fail(error) {
  problem = error
  if (error instanceof NotAllowed) askForLink()
  draw()
}

function askForLink() {
  patch(document.querySelector('main'), [
    h('h2', null, 'This page needs a link'),
    h(
      'p',
      null,
      'On a node of the cluster, ',
      h('code', null, 'dsc agent link'),
      ' prints one that opens it for some hours. Or give the agents’ token:',
    ),
    h(
      'form',
      {
        class: 'filters',
        on: {
          submit: (event) => {
            event.preventDefault()
            const secret = new FormData(event.target).get('secret').trim()
            showAs(/#(link:.*)$/.exec(secret)?.[1] ?? secret)
            problem = undefined
            begin()
          },
        },
      },
      h(
        'p',
        { class: 'filter' },
        h('label', { for: 'secret' }, 'Link or token'),
        h('input', { id: 'secret', name: 'secret', type: 'password', autocomplete: 'off', required: true }),
      ),
      h('p', { class: 'filter' }, h('button', { type: 'submit' }, 'Open')),
    ),
  ])
}

function begin() {
  void load({ isNew: true })
  void listen({
    status: (told) => {
      status = { ...status, ...told }
      problem = undefined
      draw()
      if (!document.hidden) void load({ isNew: false })
    },
    lost: fail,
  })
}

takeLink()
addEventListener('hashchange', () => {
  if (location.hash === '#main') return
  draw()
  void load({ isNew: true })
})
document.addEventListener('visibilitychange', () => {
  if (!document.hidden) void load({ isNew: false })
})
draw()
begin()
