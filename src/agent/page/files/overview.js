// The first view: what is wrong, the last 24 hours, what is on its way, who holds the space, what each node did.
import { card, drawHeat, drawHolders, drawTop, drawTransfers, STAGINGS } from './boards.js'
import { paintCurves } from './curves.js'
import { h, name } from './elements.js'
import { clock, moment, shortSpan, zone } from './format.js'
import { findTroubled, paintHeat } from './heat.js'
import { link } from './list.js'
import { curvesOf, drawTiles } from './tiles.js'
import { chip, drawTroubles } from './troubles.js'

/** Events that are shown, and the kinds that are not: what happens all the time. */
const EVENTS = 8
const COMMON = ['leased', 'released', 'staging-started', 'lease-expired']

/** What the first view asks for. */
export async function loadOverview({ ask, parameters }) {
  const [day, transfers, history] = await Promise.all([
    ask('day', {}),
    ask('transfers', { from: parameters.transfers, count: STAGINGS }),
    ask('history', {}),
  ])
  return {
    day,
    transfers,
    events: history.rows.filter(({ kind }) => !COMMON.includes(kind)).slice(0, EVENTS),
  }
}

export function drawOverview(view) {
  const { data, now } = view
  return [
    h('h2', { class: 'hidden' }, 'Overview'),
    drawTroubles(view),
    view.status?.takenAt === undefined
      ? null
      : h('div', { class: 'tiles' }, drawTiles(data.day, view.status)),
    h(
      'p',
      { class: 'between' },
      `Curves: the last ${spansOf(data.day)}, to ${clock(now)} ${zone(now)}; rates over half an hour`,
    ),
    h(
      'div',
      { class: 'boards' },
      drawTransfers(data.transfers, view),
      drawHolders(data.day, view),
      drawHeat(data.day),
      drawTop(data.day),
      drawEvents(data.events, view),
    ),
  ]
}

/** On a busy day, the curves of uses and waits are shorter. */
function spansOf({ spanMs, usesSpanMs }) {
  const whole = shortSpan(spanMs)
  return usesSpanMs < spanMs ? `${whole} (of uses: ${shortSpan(usesSpanMs)})` : whole
}

export function paintOverview({ data, status }) {
  if (status?.takenAt === undefined) return
  paintCurves(curvesOf(data.day, status))
  const isWide = innerWidth >= 1700
  paintHeat(document.querySelector('canvas.heat'), data.day, {
    rowPx: { least: isWide ? 15 : 11, most: 34 },
    fontPx: isWide ? 12 : 11,
    troubled: findTroubled(data.day, status),
  })
}

/** Kinds of events that a reader looks for first. */
const BAD_EVENTS = ['refused', 'damaged', 'staging-failed']

function drawEvents(events, { now }) {
  return card(
    'events',
    'Just now',
    { className: 'events', end: link('history', {}, 'History') },
    events.length === 0
      ? h('p', { class: 'empty' }, 'No events.')
      : h(
          'ol',
          null,
          events.map(({ sequence, at, kind, dataset, node, task }) =>
            h(
              'li',
              { key: sequence },
              h('time', { datetime: at }, moment(at, now)),
              h(
                'p',
                null,
                BAD_EVENTS.includes(kind)
                  ? chip('bad', kind.replaceAll('-', ' '))
                  : kind.replaceAll('-', ' '),
                ' ',
                link('why', { dataset, node }, name(dataset)),
                ' on ',
                name(node),
                task === null ? '' : [' for ', name(task)],
              ),
            ),
          ),
        ),
  )
}
