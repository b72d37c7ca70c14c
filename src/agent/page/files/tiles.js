// The tiles: a figure each, and the curve of its last 24 hours.
import { curvePlace, readoutPlace } from './curves.js'
import { h, visible } from './elements.js'
import { bytes, count, percent, shortSpan, span } from './format.js'

/** The figures of the tiles, by key. */
export function figuresOf(day, status) {
  const sum = (values) => values.reduce((total, value) => total + value, 0)
  const rate = status.throughput.at(-1) ?? 0
  const [uses, hits] = [sum(day.uses), sum(day.hits)]
  const [lastUses, lastHits] = [sum(day.uses.slice(-12)), sum(day.hits.slice(-12))]
  const seconds = day.stepMs / 1000
  const peers = seconds * sum(day.peerBytesPerSecond)
  const all = seconds * sum(day.receivedBytesPerSecond)
  const longestMs =
    status.waitingSince === null ? 0 : Date.parse(status.takenAt) - Date.parse(status.waitingSince)
  return {
    space: {
      title: 'Space',
      ...ofWhole(bytes(status.oursBytes), bytes(status.allowedBytes)),
      more: `${bytes(status.idleBytes)} idle`,
    },
    hits: {
      title: 'Found ready',
      value: uses === 0 ? '–' : percent(hits / uses),
      unit: '',
      more: lastUses === 0 ? 'no use in the last hour' : `last hour ${percent(lastHits / lastUses)}`,
    },
    received: {
      title: 'Receiving',
      value: `${bytes(rate)}/s`,
      unit: '',
      peers,
      source: Math.max(0, all - peers),
    },
    waiting: {
      title: 'Jobs waiting',
      value: count(status.waits),
      unit: '',
      more: status.waits === 0 ? 'none' : `longest ${span(longestMs)}`,
    },
    stalls: stallsOf(day.stalls),
    uses: {
      title: 'Uses',
      value: count(uses),
      unit: `in ${shortSpan(day.usesSpanMs)}`,
      more: `${count(status.leases)} leases now`,
    },
  }
}

/** Names of those for whom a feed waits; any other is a storage node. */
const CULPRITS = {
  transform: 'transforms',
  disk: 'disks',
  store: 'the store',
  memory: 'memory of feeds',
  order: 'the order',
  feed: 'feeds',
  start: 'feeds to start',
}

/** The share of the GPUs' time in which training waited. */
function stallsOf({ gpuMs, waitedGpuMs, culprit }) {
  const sum = (values) => values.reduce((total, value) => total + value, 0)
  const [all, waited] = [sum(gpuMs), sum(waitedGpuMs)]
  const title = 'GPUs waited'
  if (all === 0) return { title, value: '–', unit: '', more: 'no trainer told' }
  return {
    title,
    value: percent(waited / all),
    unit: all < 3_600_000 ? `of ${shortSpan(all)}` : `of ${count(Math.round(all / 3_600_000))} GPU h`,
    more: culprit === null ? 'for nobody' : `most for ${CULPRITS[culprit] ?? visible(culprit)}`,
  }
}

/** The tiles that fit on a wall. */
export const WALL_TILES = ['space', 'hits', 'received', 'waiting', 'stalls']

export function drawTiles(day, status, keys) {
  const figures = figuresOf(day, status)
  return (keys ?? Object.keys(figures)).map((key) => tile(key, figures[key]))
}

/** A figure and its day. A number and its unit are two sizes of type. */
export function tile(key, { title, value, unit, more, peers, source }) {
  const [number, ...units] = value.split(' ')
  const fromPeers = Math.round((100 * (peers ?? 0)) / Math.max(1, (peers ?? 0) + (source ?? 0)))
  return h(
    'section',
    { class: `card tile ${key}`, key, 'aria-labelledby': `tile-${key}` },
    h('h2', { id: `tile-${key}` }, title, readoutPlace(key)),
    h('p', { class: 'big' }, number, h('small', null, ` ${units.join(' ')} ${unit}`.trimEnd())),
    h(
      'p',
      { class: 'more' },
      more ?? [
        drawKey('peers', `peers ${fromPeers} %`),
        drawKey('store', `sources ${peers + source > 0 ? 100 - fromPeers : 0} %`),
      ],
    ),
    curvePlace(key, `${title}, the last 24 hours`),
  )
}

function drawKey(series, text) {
  return h('span', { class: 'item' }, h('span', { class: `key ${series}` }), text)
}

/** `124 of 286 TiB`: one unit, where both have the same. */
function ofWhole(part, whole) {
  const [number, unit] = part.split(' ')
  return whole.endsWith(` ${unit}`)
    ? { value: number, unit: `of ${whole}` }
    : { value: part, unit: `of ${whole}` }
}

/** The ratio of parts in the hour before each step; null where there was no whole. */
function hourlyRatio(parts, wholes) {
  return wholes.map((_, at) => {
    const last = (values) => values.slice(Math.max(0, at - 11), at + 1).reduce((sum, value) => sum + value, 0)
    const whole = last(wholes)
    return whole === 0 ? null : last(parts) / whole
  })
}

/** Means of the half hour around each step: a use is a moment, and its curve would be a comb. */
function smooth(values) {
  return values.map((_, at) => {
    const near = values.slice(Math.max(0, at - 3), at + 3)
    return near.reduce((sum, value) => sum + value, 0) / near.length
  })
}

export function curvesOf(day, status) {
  const { uses, hits, spaceBytes, receivedBytesPerSecond: received, peerBytesPerSecond: peers } = day
  const endSeconds = Date.parse(day.until) / 1000
  const timesOf = ({ length }) =>
    Array.from({ length }, (_, at) => endSeconds - ((length - 1 - at) * day.stepMs) / 1000)
  const fromZero = (most) => (_, high) => [0, Math.max(most ?? 0, high * 1.15) || 1]
  const allowed = status.allowedBytes
  const byHour = smooth(uses).map((perStep) => (perStep * 3_600_000) / day.stepMs)
  return {
    space: {
      times: timesOf(spaceBytes),
      series: [
        { values: spaceBytes, colour: '--ours', isFilled: true },
        { values: spaceBytes.map(() => allowed), colour: '--line-3', isDashed: true },
      ],
      range: fromZero(allowed * 1.08),
      say: ([value]) => bytes(value),
    },
    hits: {
      times: timesOf(hits),
      series: [{ values: hourlyRatio(hits, uses), colour: '--ours', isFilled: true }],
      range: () => [0, 1.05],
      say: ([value]) => (value == null ? 'no use' : percent(value)),
    },
    received: {
      times: timesOf(received),
      series: [
        { values: smooth(peers), colour: '--peers', isFilled: true },
        {
          values: smooth(received.map((rate, at) => Math.max(0, rate - peers[at]))),
          colour: '--store',
          isDashed: true,
        },
      ],
      range: fromZero(),
      say: ([fromPeers, fromSources]) => `${bytes(fromPeers)}/s + ${bytes(fromSources)}/s`,
    },
    waiting: {
      times: timesOf(day.waiting),
      series: [{ values: day.waiting, colour: '--waits', isFilled: true }],
      range: fromZero(2),
      say: ([jobs]) => `${jobs.toFixed(1)} jobs`,
    },
    stalls: {
      times: timesOf(day.stalls.gpuMs),
      series: [
        { values: hourlyRatio(day.stalls.waitedGpuMs, day.stalls.gpuMs), colour: '--waits', isFilled: true },
      ],
      range: (_, high) => [0, Math.min(1.05, Math.max(0.1, (high ?? 0) * 1.15))],
      say: ([value]) => (value == null ? 'no training' : percent(value)),
    },
    uses: {
      times: timesOf(uses),
      series: [{ values: byHour, colour: '--ours', isFilled: true }],
      range: fromZero(2),
      say: ([perHour]) => `${Math.round(perHour)} per hour`,
    },
  }
}
