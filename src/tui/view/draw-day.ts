import type { StatusSnapshot } from '../../cache/status/compose-status.js'
import type { DayHistory } from '../../cache/status/trace-day.js'
import { formatByteSize } from '../../model/byte-size.js'
import { formatCount } from '../../model/format-count.js'
import type { ScreenInput } from './screen-input.js'
import { drawGraph } from './text/braille-graph.js'
import { formatShare } from './text/format-cells.js'
import { type Glyphs, splitBar } from './text/glyphs.js'
import { type Colour, fitLine, type Line, type Span, span } from './text/styled-line.js'
import { cellWidth } from './text/text-cells.js'

const HOUR_MS = 3_600_000
const LINE_GRAPH_CELLS = 18
const LINE_BAR_CELLS = 10

/** The last 24 hours: one line of `height` 1, or two boxes with curves of bytes received and of space. */
export function drawDay(input: ScreenInput, height: number): readonly Line[] {
  const { snapshot } = input
  if (!snapshot || height === 0) return []
  const facts = { snapshot, rate: input.context.throughput.total.at(-1) ?? 0, ...sumSpace(snapshot) }
  return height === 1 ? [drawDayLine(input, facts)] : drawBoxes(input, facts, height)
}

interface Facts {
  readonly snapshot: StatusSnapshot
  /** Bytes per second received at present. */
  readonly rate: number
  readonly usedBytes: number
  readonly allowedBytes: number
}

/** The space of copies over all nodes, against what the policies allow. */
function sumSpace({ nodes }: StatusSnapshot) {
  let [usedBytes, allowedBytes] = [0, 0]
  for (const { usage, disk } of nodes) {
    usedBytes += usage.diskBytes.used
    allowedBytes += usage.diskBytes.allowed ?? disk.capacityBytes
  }
  return { usedBytes, allowedBytes }
}

function drawDayLine({ day, size, context }: ScreenInput, facts: Facts): Line {
  const { rate, usedBytes, allowedBytes, snapshot } = facts
  const { filled, empty } = splitBar(usedBytes / Math.max(1, allowedBytes), LINE_BAR_CELLS, context.glyphs)
  const received = day?.receivedBytesPerSecond ?? []
  const curve = context.glyphs.hasBraille
    ? drawGraph(received, { width: LINE_GRAPH_CELLS, rows: 1, most: Math.max(...received, rate) })[0]!
    : ''
  const isWide = size.columns >= 72
  return fitLine(
    [
      ...(isWide ? [span(` ${curve}`, { color: 'cyan' })] : []),
      span(` ${formatByteSize(rate)}/s`, { isBold: true }),
      span(' in', { isDim: true }),
      span(`   ${filled}`, { color: 'blue' }),
      span(context.glyphs.empty.repeat(empty), { isDim: true }),
      span(` ${formatShare(usedBytes, allowedBytes)}`),
      ...(isWide ? [drawWaiting(snapshot)] : []),
    ],
    size.columns,
  )
}

function drawWaiting(snapshot: StatusSnapshot): Span {
  const waiting = countWaiting(snapshot)
  return span(`   ${formatWaiting(waiting)}`, waiting === 0 ? { isDim: true } : { color: 'yellow' })
}

function countWaiting({ waits }: StatusSnapshot): number {
  return waits.filter(({ kind }) => kind === 'staging').length
}

function formatWaiting(waiting: number): string {
  return waiting === 0 ? 'no job waits' : formatCount(waiting, 'job waits', 'jobs wait')
}

function drawBoxes({ day, size, context }: ScreenInput, facts: Facts, height: number): readonly Line[] {
  const left = Math.floor(size.columns / 2)
  const rows = height - 2
  const received = day?.receivedBytesPerSecond ?? []
  const space = day?.spaceBytes ?? []
  const graph = (values: readonly number[], width: number, most: number) =>
    drawGraph(values, { width: width - 4, rows, most })
  const peak = Math.max(facts.rate, ...received)
  const boxes = [
    {
      width: left,
      title: 'received',
      value: `${formatByteSize(facts.rate)}/s now`,
      foot: describeSpan(day, peak),
      color: 'cyan' as const,
      lines: graph(received, left, peak),
    },
    {
      width: size.columns - left,
      title: 'space',
      value: formatShare(facts.usedBytes, facts.allowedBytes),
      foot: describeIdle(facts.snapshot),
      color: 'blue' as const,
      lines: graph(space, size.columns - left, facts.allowedBytes),
    },
  ]
  const drawn = boxes.map((box) => drawBox(box, context.glyphs))
  return Array.from({ length: height }, (_, row) => drawn.flatMap((lines) => lines[row] ?? []))
}

function describeSpan(day: DayHistory | undefined, peak: number): string {
  if (!day) return 'reading the history'
  return `last ${formatCount(Math.ceil(day.spanMs / HOUR_MS), 'hour')}, peak ${formatByteSize(peak)}/s`
}

function describeIdle(snapshot: StatusSnapshot): string {
  const idle = snapshot.nodes.reduce((sum, { usage }) => sum + usage.evictableBytes, 0)
  return `${formatByteSize(idle)} idle, ${formatWaiting(countWaiting(snapshot))}`
}

interface DayBox {
  readonly width: number
  readonly title: string
  readonly value: string
  readonly foot: string
  readonly color: Colour
  readonly lines: readonly string[]
}

/** A frame with a title and a number in its upper edge, the curve, and a remark in its lower edge. */
function drawBox({ width, title, value, foot, color, lines }: DayBox, glyphs: Glyphs): readonly Line[] {
  const { rule, side, corners } = glyphs
  const edge = (start: string, count: number, end = '') =>
    span(start + rule.repeat(Math.max(0, count)) + end, { isDim: true })
  const spare = width - 10 - cellWidth(title) - cellWidth(value)
  const [upperLeft, upperRight, lowerLeft, lowerRight] = corners
  return [
    [
      edge(` ${upperLeft}`, 1),
      span(` ${title} `, { isBold: true }),
      edge('', spare),
      span(` ${value} `, { color }),
      edge('', 1, upperRight),
    ],
    ...lines.map((line) => [
      span(` ${side}`, { isDim: true }),
      span(line, { color }),
      span(`${side} `, { isDim: true }),
    ]),
    [
      edge(` ${lowerLeft}`, width - 7 - cellWidth(foot)),
      span(` ${foot} `, { isDim: true }),
      edge('', 1, lowerRight),
    ],
  ].map((line) => fitLine(line, width))
}
