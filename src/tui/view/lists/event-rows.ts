import type { StatusSnapshot } from '../../../cache/status/compose-status.js'
import type { RecordEvent, RecordEventKind } from '../../../model/record-event.js'
import type { ColumnSpec } from '../text/column-layout.js'
import { formatMoment } from '../text/format-cells.js'
import { type Colour, type Span, span } from '../text/styled-line.js'
import { type DrawContext, type ListChoice, type ListRows, matchesFilter, widthOf } from './list-rows.js'
import { type SortValues, sortRows } from './sort-rows.js'

const SORT_VALUES: SortValues<RecordEvent> = {
  TIME: ({ sequence }) => sequence,
  WHAT: ({ kind }) => kind,
  DATASET: ({ dataset }) => dataset,
  NODE: ({ node }) => node,
  WHY: ({ reason }) => reason,
}

function planColumns(events: readonly RecordEvent[]): readonly ColumnSpec[] {
  const name = widthOf(events, (event) => event.dataset, [7, 60])
  const node = widthOf(events, (event) => event.node, [4, 24])
  const kind = widthOf(events, (event) => event.kind, [8, 18])
  return [
    { title: 'TIME', width: 11 },
    { title: 'WHAT', width: kind },
    { title: 'DATASET', width: name, minWidth: Math.min(name, 16) },
    { title: 'NODE', width: node, minWidth: Math.min(node, 10), dropOrder: 2 },
    { title: 'WHY', width: 30, minWidth: 16, grow: 1 },
  ]
}

const COLOURS: Readonly<Partial<Record<RecordEventKind, Colour>>> = {
  staged: 'green',
  'staging-started': 'cyan',
  'staging-taken-over': 'cyan',
  'staging-failed': 'red',
  'eviction-refused': 'yellow',
  refused: 'red',
  damaged: 'red',
  evicted: 'yellow',
  forgotten: 'yellow',
  'lease-expired': 'yellow',
}

/** Events, newest first. */
export function listEventRows(snapshot: StatusSnapshot, { filter, sort }: ListChoice): ListRows {
  const found = snapshot.events.filter((event) =>
    matchesFilter(filter, [
      event.dataset,
      event.node,
      event.kind.replaceAll('-', ' '),
      event.task,
      event.reason,
    ]),
  )
  const events = sortRows(found, sort, SORT_VALUES)
  return {
    list: 'events',
    columns: planColumns(snapshot.events),
    sortable: Object.keys(SORT_VALUES),
    keys: events.map((event) => String(event.sequence)),
    total: snapshot.events.length,
    copyIdAt: (index) => events[index]?.copyId ?? undefined,
    scopeAt: (index) => {
      const dataset = events[index]?.dataset
      return dataset === undefined ? undefined : { dataset, label: dataset, opens: 'events' as const }
    },
    drawAt: (index, _widths, context) => drawEvent(events[index]!, context),
    emptyText: filter === '' ? 'No events yet' : 'No event matches the filter',
  }
}

function drawEvent(event: RecordEvent, context: DrawContext): readonly Span[] {
  const color = COLOURS[event.kind]
  return [
    span(formatMoment(event.atMs, context.nowMs, context.utcOffsetMinutes), { isDim: true }),
    span(event.kind.replaceAll('-', ' '), color ? { color } : {}),
    span(event.dataset),
    span(event.node),
    span(
      event.task === null || event.reason.includes(event.task)
        ? event.reason
        : `${event.reason} ${context.glyphs.dot} ${event.task}`,
    ),
  ]
}
