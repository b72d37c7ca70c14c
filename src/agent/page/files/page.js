// The page: which view is shown is in the address, behind `#/`; what it shows comes from the agent, again and again.
import { ask, listen, NotAllowed, showAs, takeLink } from './connection.js'
import { drawDatasets, loadDatasets } from './datasets.js'
import { h, name, patch, visible } from './elements.js'
import { clockSeconds, counted, moment, zone } from './format.js'
import { drawNodesView, loadNodes } from './nodes.js'
import { drawOverview, loadOverview, paintOverview } from './overview.js'
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
import { markTab, sign } from './troubles.js'
import { drawWall, isWall, loadWall, paintWall } from './wall.js'

const VIEWS = {
  overview: isWall
    ? { title: 'Wall', load: loadWall, draw: drawWall, paint: paintWall }
    : { title: 'Overview', load: loadOverview, draw: drawOverview, paint: paintOverview },
  datasets: { title: 'Datasets', load: loadDatasets, draw: drawDatasets },
  nodes: { title: 'Nodes', load: loadNodes, draw: drawNodesView },
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
  const view = Object.hasOwn(VIEWS, path) && !isWall ? path : 'overview'
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
    if (isOther && isNew) document.querySelector('main').focus({ preventScroll: true })
  } catch (error) {
    if (loading !== own || own.signal.aborted) return
    fail(error)
  } finally {
    if (loading === own) loading = undefined
  }
}

function draw() {
  const current = place().view
  markTab(VIEWS[current].title, status)
  patch(
    document.querySelector('#views'),
    Object.entries(VIEWS).map(([key, { title }]) =>
      h('a', { href: `#/${key}`, key, 'aria-current': key === current ? 'page' : undefined }, title),
    ),
  )
  patch(document.querySelector('#place'), status ? ['on ', name(status.node)] : [])
  drawConnection()
  drawProblems(current)
  if (!shown || problem instanceof NotAllowed) return
  const now = status?.takenAt ?? new Date().toISOString()
  const main = document.querySelector('main')
  main.dataset.view = shown.view
  const { draw: describe, paint } = VIEWS[shown.view]
  patch(main, describe({ ...shown, status, now, set }))
  paint?.({ ...shown, status })
}

/** How many problems there are, where the first view does not say it already. */
function drawProblems(current) {
  const problems = status?.totalTroubles ?? 0
  patch(
    document.querySelector('#problems'),
    problems === 0 || current === 'overview'
      ? []
      : [h('a', { class: 'chip bad', href: '#/overview' }, sign('bad'), counted(problems, 'problem'))],
  )
  const now = status?.takenAt
  patch(document.querySelector('#now'), now ? [`${clockSeconds(now)} ${zone(now)}`] : [])
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
      : `nothing new${status?.takenAt ? ` since ${moment(status.takenAt, new Date().toISOString())}` : ''}: ${visible(bad)}`
  element.className = bad === undefined ? (status ? 'live' : '') : 'bad'
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
      ' prints a link that opens this page for some hours. Or enter the agents’ token:',
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

/** Asks for names that complete what is being typed. A failure costs the names, nothing else. */
let asking
function complete({ target }) {
  if (!(target instanceof HTMLInputElement) || !target.list) return
  clearTimeout(asking)
  asking = setTimeout(async () => {
    try {
      const names = await ask('names', { filter: target.value, count: 30 })
      for (const kind of ['datasets', 'nodes'])
        patch(
          document.querySelector(`#known-${kind}`),
          names[kind].map((value) => h('option', { value, key: value })),
        )
    } catch {}
  }, 150)
}

takeLink()
if (isWall) document.documentElement.classList.add('wall')
addEventListener('input', complete)
addEventListener('focusin', complete)
addEventListener('resize', draw)
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', draw)
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
