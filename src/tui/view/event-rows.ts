import type { RecordEvent, RecordEventKind } from '../../model/record-event.js'
import type { StatusSnapshot } from '../../stage/plan/compose-status.js'
import { formatMoment } from './format-cells.js'
import { type DrawContext, type ListRows, matchesFilter } from './list-rows.js'
import { type Colour, type Span, span } from './styled-line.js'

export const EVENT_COLUMNS = [
  { title: 'TIME', width: 14, minWidth: 8 },
  { title: 'WHAT', width: 18, minWidth: 14 },
  { title: 'DATASET', width: 16, minWidth: 10, grow: 1 },
  { title: 'NODE', width: 12, minWidth: 7, dropOrder: 2 },
  { title: 'WHY', width: 30, minWidth: 12, grow: 4 },
] as const

const COLOURS: Readonly<Partial<Record<RecordEventKind, Colour>>> = {
  staged: 'green',
  'staging-started': 'cyan',
  'staging-taken-over': 'cyan',
  'staging-failed': 'red',
  refused: 'red',
  damaged: 'red',
  evicted: 'yellow',
  forgotten: 'yellow',
  'lease-expired': 'yellow',
}

/** What happened, newest first. */
export function listEventRows(snapshot: StatusSnapshot, filter: string): ListRows {
  const events = snapshot.events.filter((event) =>
    matchesFilter(filter, [event.dataset, event.node, event.kind, event.task, event.reason]),
  )
  return {
    tab: 'events',
    columns: EVENT_COLUMNS,
    keys: events.map((event) => String(event.sequence)),
    total: snapshot.events.length,
    copyIdAt: (index) => events[index]?.copyId ?? undefined,
    drawAt: (index, _widths, context) => drawEvent(events[index]!, context),
    emptyText: filter === '' ? 'Nothing has happened yet' : 'No event matches the filter',
  }
}

/** The cells of one event, in the order of `EVENT_COLUMNS`. */
export function drawEvent(event: RecordEvent, context: DrawContext): readonly Span[] {
  const color = COLOURS[event.kind]
  return [
    span(formatMoment(event.atMs, context.nowMs, context.utcOffsetMinutes), { isDim: true }),
    span(event.kind, color ? { color } : {}),
    span(event.dataset),
    span(event.node),
    span(event.task === null ? event.reason : `${event.reason} ${context.glyphs.dot} ${event.task}`),
  ]
}
