// Curves of the last 24 hours, drawn by uPlot. One cursor moves over all of them; each says what it shows in words, too.
import { h } from './elements.js'
import { clock } from './format.js'
import UPlot from './uplot.js'

/** uPlot's object of an element, and what it was made for. */
const drawn = new WeakMap()

/** The place of a curve: `paintCurves` draws into it. */
export function curvePlace(key, label) {
  return h('div', { class: 'plot', id: `curve-${key}`, role: 'img', 'aria-label': label, isOwn: true })
}

/** The place where the values under the cursor are told. */
export function readoutPlace(key) {
  return h('span', { class: 'readout', id: `readout-${key}`, 'aria-hidden': 'true', isOwn: true })
}

/**
 * Draws `curves`: by key, `times` (seconds), `series` of `values`, `colour` (a property of the page's style), `isDashed`
 * and `isFilled`, the `range` of values, and `say(values)` for the readout.
 */
export function paintCurves(curves) {
  for (const [key, curve] of Object.entries(curves)) {
    const place = document.querySelector(`#curve-${key}`)
    if (place && place.clientWidth > 0) paint(place, key, curve)
  }
}

function paint(place, key, curve) {
  const look = `${place.clientWidth} ${place.clientHeight} ${style('--surface')} ${curve.series.length}`
  const data = [curve.times, ...curve.series.map(({ values }) => values)]
  const known = drawn.get(place)
  if (known?.look === look) {
    known.curve = curve
    known.plot.setData(data)
    return
  }
  known?.plot.destroy()
  const own = { look, curve }
  drawn.set(place, own)
  own.plot = new UPlot(describe(place, key, own), data, place)
}

function describe(place, key, own) {
  const thick = parseFloat(style('--curve')) || 1.6
  return {
    width: place.clientWidth,
    height: place.clientHeight,
    legend: { show: false },
    padding: [4, 0, 2, 0],
    cursor: {
      sync: { key: 'day' },
      y: false,
      points: { size: 6 },
      drag: { setScale: false, x: false, y: false },
    },
    scales: { x: { time: true }, y: { range: (_, low, high) => own.curve.range(low ?? 0, high ?? 0) } },
    axes: [{ show: false }, { show: false }],
    series: [
      {},
      ...own.curve.series.map(({ colour, isDashed, isFilled }) => ({
        stroke: style(colour),
        width: thick,
        dash: isDashed ? [4 * thick, 3 * thick] : undefined,
        points: { show: false },
        fill: isFilled ? (plot) => fade(plot, style(colour)) : undefined,
      })),
    ],
    hooks: { setCursor: [(plot) => tell(key, plot, own)] },
  }
}

function fade(plot, colour) {
  const gradient = plot.ctx.createLinearGradient(0, plot.bbox.top, 0, plot.bbox.top + plot.bbox.height)
  gradient.addColorStop(0, `${colour}45`)
  gradient.addColorStop(1, `${colour}00`)
  return gradient
}

function tell(key, plot, { curve }) {
  const element = document.querySelector(`#readout-${key}`)
  const at = plot.cursor.idx
  const isOver = plot.cursor.left >= 0 && at != null
  const text = isOver
    ? `${clock(1000 * plot.data[0][at])}  ${curve.say(plot.data.slice(1).map((values) => values[at]))}`
    : ''
  if (element && element.textContent !== text) element.textContent = text
}

/** A property of the page's style, in the present theme. */
export function style(property) {
  return getComputedStyle(document.documentElement).getPropertyValue(property).trim()
}
