// `?wall`: for a screen on a wall, read from three metres. No controls, no scrolling; it fills 2,000 × 1,200.

import { heatLegend, sourceOf } from './boards.js'
import { paintCurves } from './curves.js'
import { h, name, sentence, visible } from './elements.js'
import { meter } from './figures.js'
import { bytes, clock, count, counted, date, percent, shortSpan, zone } from './format.js'
import { findTroubled, heatPlace, paintHeat } from './heat.js'
import { curvesOf, drawTiles, WALL_TILES } from './tiles.js'
import { sign } from './troubles.js'

/** What fits. */
const TROUBLES = 4
const STAGINGS = 5

export const isWall = new URLSearchParams(location.search).has('wall')

export async function loadWall({ ask }) {
  const [day, transfers] = await Promise.all([ask('day', {}), ask('transfers', { count: STAGINGS })])
  return { day, transfers }
}

export function drawWall({ data, status, now }) {
  if (status?.takenAt === undefined) return []
  return [
    h(
      'div',
      { class: 'first' },
      drawCount(status),
      drawList(status, now),
      h(
        'p',
        { class: 'clock' },
        h('b', null, clock(now)),
        h('span', null, `${date(now)}, ${zone(now)}`),
        h('span', null, `${counted(status.nodes, 'node')}, from `, name(status.node)),
      ),
    ),
    h('div', { class: 'tiles' }, drawTiles(data.day, status, WALL_TILES)),
    h('div', { class: 'low' }, drawMap(data.day), drawStagings(data.transfers)),
  ]
}

function drawCount({ totalTroubles, nodes, nodesRead }) {
  if (totalTroubles === 0)
    return h(
      'h1',
      { class: 'count fine' },
      sign('ok'),
      h('span', null, 'Nothing is wrong', h('small', null, counted(nodes, 'node'))),
    )
  const seen =
    nodesRead < nodes ? `${count(nodesRead)} of ${counted(nodes, 'node')} read` : counted(nodes, 'node')
  return h(
    'h1',
    { class: 'count' },
    h('b', null, count(totalTroubles)),
    h('span', null, sign('bad'), totalTroubles === 1 ? 'problem' : 'problems', h('small', null, seen)),
  )
}

function drawList({ troubles, totalTroubles }, now) {
  const shown = troubles.slice(0, totalTroubles > TROUBLES ? TROUBLES - 1 : TROUBLES)
  return h(
    'ul',
    { class: `what${shown.length <= 3 ? ' roomy' : ''}` },
    shown.map(({ kind, text, since }) =>
      h(
        'li',
        { key: `${kind} ${text}` },
        h('span', null, kind),
        h('span', null, sentence(text)),
        h('span', { class: 'minor' }, since === null ? '' : shortSpan(Date.parse(now) - Date.parse(since))),
      ),
    ),
    totalTroubles > shown.length
      ? h(
          'li',
          { key: 'more' },
          h('span'),
          h('span', null, `and ${count(totalTroubles - shown.length)} more`),
        )
      : null,
  )
}

function drawMap(day) {
  return h(
    'section',
    { class: 'card', 'aria-labelledby': 'heat' },
    h('header', null, h('h2', { id: 'heat' }, 'Nodes, 24 hours'), heatLegend({ isShort: true })),
    h('div', { class: 'canvas' }, heatPlace(day)),
  )
}

function drawStagings({ rows, total }) {
  return h(
    'section',
    { class: 'card', 'aria-labelledby': 'stagings' },
    h('header', null, h('h2', { id: 'stagings' }, 'Stagings'), h('p', { class: 'minor' }, count(total))),
    rows.length === 0
      ? h('p', { class: 'empty' }, 'Nothing is being staged.')
      : h('ul', { class: 'st' }, rows.map(drawStaging)),
  )
}

function drawStaging(transfer) {
  const {
    copyId,
    dataset,
    node,
    writtenBytes,
    contentBytes,
    bytesPerSecond,
    leftMs,
    waitingTasks,
    state,
    stager,
  } = transfer
  const ratio = contentBytes > 0 ? Math.min(1, writtenBytes / contentBytes) : 0
  const isStuck = stager === null || (bytesPerSecond !== null && bytesPerSecond <= 0 && state === 'staging')
  const rate =
    stager === null
      ? 'interrupted'
      : isStuck
        ? 'stalled'
        : bytesPerSecond === null
          ? 'begins'
          : `${bytes(bytesPerSecond)}/s`
  const waiting =
    waitingTasks.length === 0 ? '' : ` · ${counted(waitingTasks.length, 'job waits', 'jobs wait')}`
  return h(
    'li',
    { key: copyId },
    h('b', null, name(dataset), h('span', { class: 'minor' }, ' → ', name(node))),
    h(
      'span',
      { class: `number${isStuck ? ' bad' : ''}` },
      percent(ratio),
      leftMs === null ? '' : ` · ${shortSpan(leftMs)}`,
    ),
    meter([ratio], `${visible(dataset)} is staged to ${percent(ratio)}`),
    h('small', null, `${rate} from ${sourceOf(transfer)}${waiting}`),
  )
}

export function paintWall({ data, status }) {
  if (status?.takenAt === undefined) return
  paintCurves(curvesOf(data.day, status))
  paintHeat(document.querySelector('canvas.heat'), data.day, {
    rowPx: { least: 0, most: 40 },
    fontPx: Math.round(0.86 * Number.parseFloat(getComputedStyle(document.documentElement).fontSize)),
    troubled: findTroubled(data.day, status),
  })
}
