// Small pictures. Each says in words what it shows, and tells its parts apart without colour.
import { h } from './elements.js'
import { bytes, percent } from './format.js'

/** A disk: ours, others' (hatched), free; the mark is what the policy lets copies take in all. */
export function diskBar({ usage, disk }) {
  const { oursBytes, othersBytes, freeBytes } = usage.onDisk
  const whole = Math.max(1, disk.capacityBytes)
  const [ours, others] = [(100 * oursBytes) / whole, (100 * othersBytes) / whole]
  const { allowed } = usage.diskBytes
  const text =
    `ours ${bytes(oursBytes)}, others ${bytes(othersBytes)}, free ${bytes(freeBytes)} of ${bytes(disk.capacityBytes)}` +
    (allowed === null ? '' : `; copies may take ${bytes(allowed)}`)
  return h(
    'svg',
    { class: 'disk', viewBox: '0 0 100 8', preserveAspectRatio: 'none', role: 'img', 'aria-label': text },
    h('rect', { class: 'free', width: 100, height: 8 }),
    h('rect', { class: 'ours', width: ours, height: 8 }),
    h('rect', { class: 'others', x: ours, width: others, height: 8 }),
    hatch(ours, others),
    allowed !== null && allowed < whole
      ? h('rect', { class: 'limit', x: Math.min(99, (100 * allowed) / whole), width: 0.7, height: 8 })
      : null,
  )
}

function hatch(from, width) {
  const lines = []
  for (let x = from + 1; x < from + width; x += 2)
    lines.push(h('line', { class: 'hatch', x1: x, x2: x, y1: 0, y2: 8 }))
  return lines
}

/** How far something is. */
export function progress(ratio, label) {
  return h('progress', { max: 100, value: Math.floor(100 * ratio), 'aria-label': label }, percent(ratio))
}

/** Rates of the last five minutes, bytes per second, oldest first. */
export function sparkline(rates, label) {
  const most = Math.max(1, ...rates)
  const from = 150 - rates.length
  const points = rates.map((rate, at) => `${from + at},${(30 - (28 * rate) / most).toFixed(1)}`)
  const last = rates.at(-1) ?? 0
  const text = `${label}: ${bytes(last)} a second now, at most ${bytes(most === 1 ? 0 : most)} in the last 5 minutes`
  return h(
    'svg',
    { class: 'spark', viewBox: '0 0 150 30', preserveAspectRatio: 'none', role: 'img', 'aria-label': text },
    points.length > 1 && h('polygon', { points: `${from},30 ${points.join(' ')} 149,30` }),
  )
}

/** A bar of parts, each a share of the whole; the later ones are lighter. */
export function meter(parts, label) {
  let x = 0
  return h(
    'svg',
    { class: 'meter', viewBox: '0 0 100 8', preserveAspectRatio: 'none', role: 'img', 'aria-label': label },
    h('rect', { class: 'free', width: 100, height: 8 }),
    parts.map((part, at) => {
      const from = x
      x += 100 * part
      return h('rect', {
        class: at === 0 ? 'ours' : 'idle',
        x: from,
        width: Math.max(0, 100 * part),
        height: 8,
      })
    }),
  )
}

/** One bar for each value. */
export function bars(values, label) {
  const most = Math.max(1, ...values)
  return h(
    'svg',
    {
      class: 'bars',
      viewBox: `0 0 ${10 * values.length} 30`,
      preserveAspectRatio: 'none',
      role: 'img',
      'aria-label': label,
    },
    values.map((value, at) => {
      const height = value === 0 ? 0.8 : Math.max(2, (30 * value) / most)
      return h('rect', { class: 'ours', x: 10 * at, y: 30 - height, width: 7.5, height })
    }),
  )
}
