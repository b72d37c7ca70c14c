// Nodes × time: deeper is more bytes received; what went wrong is a sign as well as a colour.
import { style } from './curves.js'
import { h, visible } from './elements.js'
import { bytes, clock, counted, shortSpan } from './format.js'

/** Shorter waits in a half hour are no mark, ms. */
const NOTABLE_WAIT_MS = 5 * 60_000
const HALF_HOUR_MS = 1_800_000

/** The place of the map: `paintHeat` draws into it. */
export function heatPlace(day) {
  return h('canvas', { class: 'heat', role: 'img', 'aria-label': describeHeat(day), isOwn: true })
}

/** The same in a sentence. */
function describeHeat({ nodes }) {
  const sum = (values) => values.reduce((total, value) => total + value, 0)
  const received = nodes.map((row) => ({ node: row.node, total: sum(row.receivedBytes) }))
  const most = received.toSorted((a, b) => b.total - a.total)[0]
  const count = (field) => sum(nodes.map((row) => sum(row[field])))
  return `Bytes received by ${counted(nodes.length, 'node')} in the last 24 hours${
    most?.total > 0 ? `, most by ${visible(most.node)}: ${bytes(most.total)}` : ''
  }; ${counted(count('refusals'), 'refusal')}, ${counted(count('damages'), 'damaged copy', 'damaged copies')}`
}

/** What a mark is for: the worst first. */
function markOf({ damages, refusals, waitedMs }, at) {
  if (damages[at] > 0) return '!'
  if (refusals[at] > 0) return '×'
  return waitedMs[at] >= NOTABLE_WAIT_MS ? '•' : ''
}

/** Half hours are paired where there is little room. */
function pair(rows) {
  const half = (values) =>
    values.filter((_, at) => at % 2 === 0).map((value, at) => value + values[2 * at + 1])
  return rows.map(({ node, receivedBytes, waitedMs, refusals, damages }) => ({
    node,
    receivedBytes: half(receivedBytes),
    waitedMs: half(waitedMs),
    refusals: half(refusals),
    damages: half(damages),
  }))
}

/** Draws the map of `day` into the canvas, with rows as high as its place has room for, from `rowPx.least` to `rowPx.most`. */
export function paintHeat(canvas, day, { rowPx, fontPx, troubled = [] }) {
  const width = canvas.parentElement.clientWidth
  if (width === 0) return
  const isNarrow = width < 480
  const rows = isNarrow ? pair(day.nodes) : day.nodes
  const columns = rows[0]?.receivedBytes.length ?? 1
  const context = canvas.getContext('2d')
  const font = (weight) => `${weight} ${fontPx}px ${style('--sans')}`
  context.font = font(600)
  const names = rows.map(({ node }) => shorten(visible(node)))
  const left = Math.ceil(
    Math.min(width / 3, Math.max(...names.map((text) => context.measureText(text).width)) + 10),
  )
  const top = Math.ceil(fontPx * 1.7)
  const cell = (width - left) / columns
  // The canvas lies over its place and cannot stretch it.
  canvas.parentElement.style.minHeight = `${top + rows.length * rowPx.least}px`
  const room = (canvas.parentElement.clientHeight - top) / Math.max(1, rows.length)
  const rowHeight = Math.max(rowPx.least, Math.min(rowPx.most, room))
  const height = top + rows.length * rowHeight
  const scale = devicePixelRatio
  const isOther = canvas.width !== Math.round(width * scale) || canvas.height !== Math.round(height * scale)
  if (isOther) {
    canvas.width = Math.round(width * scale)
    canvas.height = Math.round(height * scale)
    canvas.style.width = `${width}px`
    canvas.style.height = `${height}px`
  }
  context.setTransform(scale, 0, 0, scale, 0, 0)
  context.clearRect(0, 0, width, height)
  drawHours(context, { day, left, top, width, cell, columns, font: font(400) })
  const most = Math.max(1, ...rows.flatMap(({ receivedBytes }) => receivedBytes))
  const ramp = [0, 1, 2, 3, 4, 5].map((depth) => style(`--heat-${depth}`))
  const every = Math.max(1, Math.ceil((fontPx * 1.15) / rowHeight))
  for (const [at, row] of rows.entries()) {
    const y = top + at * rowHeight
    const isTroubled = troubled.includes(row.node)
    const isCrowded =
      every > 1 && !isTroubled && rows.slice(at - 1, at + 2).some(({ node }) => troubled.includes(node))
    if (isTroubled || (at % every === 0 && !isCrowded)) {
      context.font = font(isTroubled ? 650 : 400)
      context.fillStyle = style(isTroubled ? '--bad' : '--text-3')
      context.textAlign = 'right'
      context.textBaseline = 'middle'
      context.fillText(names[at], left - 8, y + rowHeight / 2, left - 8)
    }
    for (const [column, received] of row.receivedBytes.entries()) {
      // Few bytes are seen beside many: the root of the share.
      const depth = received === 0 ? 0 : Math.max(1, Math.ceil(5 * Math.sqrt(received / most)))
      const place = { x: left + column * cell, y, width: cell - 1, height: rowHeight - 1 }
      drawCell(context, place, { colour: ramp[depth], mark: markOf(row, column) })
    }
  }
  canvas.onpointermove = (event) => {
    const row = rows[Math.floor((event.offsetY - top) / rowHeight)]
    const column = Math.floor((event.offsetX - left) / cell)
    say(row && column >= 0 ? describeCell(row, column, { day, columns }) : '')
  }
  canvas.onpointerleave = () => say('')
  canvas.onclick = (event) => {
    const row = rows[Math.floor((event.offsetY - top) / rowHeight)]
    if (row) location.hash = `#/copies?${new URLSearchParams({ node: row.node })}`
  }
}

function shorten(text) {
  return text.length > 22 ? `${text.slice(0, 10)}…${text.slice(-10)}` : text
}

function drawHours(context, { day, left, top, width, cell, columns, font }) {
  const endMs = Date.parse(day.until)
  const columnMs = (48 / columns) * HALF_HOUR_MS
  context.font = font
  context.fillStyle = style('--text-3')
  context.textAlign = 'left'
  context.textBaseline = 'middle'
  const hours = width - left < 420 ? 6 : 4
  for (let column = 0; column < columns; column += 1) {
    const beginMs = endMs - (columns - column) * columnMs
    const hour = Math.ceil(beginMs / 3_600_000) * 3_600_000
    const x = left + (column + (hour - beginMs) / columnMs) * cell
    if (hour - beginMs < columnMs && new Date(hour).getHours() % hours === 0 && x < width - 40)
      context.fillText(clock(hour), x, top / 2 - 1)
  }
}

function drawCell(context, { x, y, width, height }, { colour, mark }) {
  context.fillStyle = mark === '' ? colour : style(mark === '•' ? '--warn-solid' : '--bad-solid')
  context.fillRect(x, y, width, height)
  if (mark === '') return
  const [middleX, middleY, reach] = [x + width / 2, y + height / 2, Math.min(width, height) / 2]
  context.strokeStyle = context.fillStyle = style('--surface')
  context.lineWidth = Math.max(1.3, reach / 3.2)
  context.beginPath()
  if (mark === '×') {
    const arm = reach * 0.55
    context.moveTo(middleX - arm, middleY - arm)
    context.lineTo(middleX + arm, middleY + arm)
    context.moveTo(middleX + arm, middleY - arm)
    context.lineTo(middleX - arm, middleY + arm)
    context.stroke()
  } else if (mark === '!') {
    context.moveTo(middleX, middleY - reach * 0.65)
    context.lineTo(middleX, middleY + reach * 0.1)
    context.moveTo(middleX, middleY + reach * 0.4)
    context.lineTo(middleX, middleY + reach * 0.65)
    context.stroke()
  } else {
    context.arc(middleX, middleY, reach * 0.42, 0, 7)
    context.fill()
  }
}

function describeCell(row, column, { day, columns }) {
  const columnMs = (48 / columns) * HALF_HOUR_MS
  const beginMs = Date.parse(day.until) - (columns - column) * columnMs
  const facts = [`${bytes(row.receivedBytes[column])} received`]
  if (row.waitedMs[column] >= 1000) facts.push(`jobs waited ${shortSpan(row.waitedMs[column])}`)
  if (row.refusals[column] > 0) facts.push(counted(row.refusals[column], 'refusal'))
  if (row.damages[column] > 0) facts.push(counted(row.damages[column], 'damaged copy', 'damaged copies'))
  return `${visible(row.node)} ${clock(beginMs)}–${clock(beginMs + columnMs)} · ${facts.join(' · ')}`
}

function say(text) {
  const element = document.querySelector('#heat-readout')
  if (element) element.textContent = text
}

/** The nodes that a problem names. */
export function findTroubled({ nodes }, status) {
  const words = new Set((status?.troubles ?? []).flatMap(({ text }) => text.split(/[\s:,()]+/)))
  return nodes.map(({ node }) => node).filter((node) => words.has(node))
}
