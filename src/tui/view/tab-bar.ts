import { STATUS_EVENTS, type StatusSnapshot } from '../../cache/status/compose-status.js'
import { type DrawContext, type ListRows, TABS, type Tab } from './lists/list-rows.js'
import { describeSort } from './lists/sort-rows.js'
import type { ScreenInput } from './screen-input.js'
import type { ScreenState } from './screen-state.js'
import { type Line, lineText, type Span, span, spreadLine } from './text/styled-line.js'
import { cellWidth, fitText } from './text/text-cells.js'

const NAMES: Readonly<Record<Tab, string>> = {
  copies: 'Copies',
  leases: 'Leases',
  transfers: 'Transfers',
  events: 'Events',
  nodes: 'Nodes',
  waits: 'Waits',
  datasets: 'Datasets',
  shares: 'Shares',
}

/** The lists with their counts; the filter at the right. */
export function drawTabs(input: ScreenInput, snapshot: StatusSnapshot): Line {
  const { state, rows, size, context } = input
  const isRefused = snapshot.waits.some(({ kind }) => kind === 'room')
  const tabs = placeTabs(input, snapshot).map(({ tab, text }): Span => {
    if (tab === state.tab) return span(text, { isInverse: true, isBold: true })
    return span(text, tab === 'waits' && isRefused ? { color: 'red' } : {})
  })
  return spreadLine(tabs, drawFilter(state, rows, context), size.columns)
}

/** The list whose name is at this column; undefined if none is. */
export function findTab(input: ScreenInput, snapshot: StatusSnapshot, column: number): Tab | undefined {
  let end = 0
  for (const { tab, text } of placeTabs(input, snapshot)) {
    end += cellWidth(text)
    if (column < end) return tab
  }
  return undefined
}

/**
 * The longest form that fits: full, shortened, without counts, shortened without counts, or only digits for hidden
 * lists.
 */
function placeTabs({ state, rows, size, context }: ScreenInput, snapshot: StatusSnapshot) {
  const counts: Readonly<Record<Tab, number>> = {
    copies: snapshot.copies.length,
    leases: snapshot.leases.length,
    transfers: snapshot.transfers.length,
    events: snapshot.events.length,
    nodes: snapshot.nodes.length,
    waits: snapshot.waits.length,
    datasets: new Set(snapshot.copies.map(({ dataset }) => dataset)).size,
    shares: snapshot.nodes.reduce((sum, { usage }) => sum + usage.shares.length, 0),
  }
  const isCut = (tab: Tab) => tab === 'events' && counts.events >= STATUS_EVENTS
  const name = (tab: Tab, cells?: number) =>
    ` ${NAMES[tab].slice(0, cells)} ${counts[tab].toLocaleString('en-US')}${isCut(tab) ? '+' : ''}`
  const place = (nameOf: (tab: Tab) => string) =>
    TABS.map((tab, at) => ({ tab, text: ` ${at + 1}${nameOf(tab)} ` })).filter(
      // Most clusters have no shares, so leave their tab out.
      ({ tab }) => tab !== 'shares' || counts.shares > 0 || state.tab === 'shares',
    )
  const room = size.columns - cellWidth(lineText(drawFilter(state, rows, context)))
  const forms = [
    place((tab) => name(tab)),
    place((tab) => name(tab, 5)),
    place((tab) => (tab === state.tab ? name(tab) : ` ${NAMES[tab]}`)),
    place((tab) => (tab === state.tab ? name(tab) : ` ${NAMES[tab].slice(0, 5)}`)),
    place((tab) => (tab === state.tab ? name(tab) : '')),
  ]
  const widthOf = (form: (typeof forms)[number]) => form.reduce((sum, { text }) => sum + cellWidth(text), 0)
  return forms.find((form) => widthOf(form) <= room) ?? forms.at(-1)!
}

function drawFilter(state: ScreenState, rows: ListRows, context: DrawContext): Line {
  if (state.filter === '' && state.mode.kind !== 'filter') {
    const sort = state.sorts[state.tab]
    return [
      ...(state.scope ? [span(`${state.scope.label} `, { color: 'yellow' as const })] : []),
      ...(sort ? [span(`${describeSort(sort)} `, { isDim: true })] : []),
    ]
  }
  const found = `${rows.keys.length.toLocaleString('en-US')} of ${rows.total.toLocaleString('en-US')} `
  const shown =
    cellWidth(state.filter) > 20
      ? fitText(state.filter, 20, { ellipsis: context.glyphs.ellipsis })
      : state.filter
  return [span(`/${shown} `, { color: 'yellow' }), span(found, { isDim: true })]
}
