import { STATUS_EVENTS, type StatusSnapshot } from '../../cache/status/compose-status.js'
import { listTroubles } from '../../cache/status/list-troubles.js'
import { type DrawContext, GROUPS, type ListRows, TABS, type Tab } from './lists/list-rows.js'
import { describeSort } from './lists/sort-rows.js'
import type { ScreenInput } from './screen-input.js'
import { findList, type Scope, type ScreenState } from './screen-state.js'
import { fitLine, type Line, lineText, type Span, span, spreadLine } from './text/styled-line.js'
import { cellWidth, fitText } from './text/text-cells.js'

/** The tabs with their counts; at the right the trail, the filter or the order. */
export function drawTabs(input: ScreenInput, snapshot: StatusSnapshot): Line {
  const { state, rows, size, context } = input
  const tabs = placeTabs(input, snapshot).flatMap(({ tab, text, wrong }): Span[] => [
    span(text, tab === state.tab ? { isInverse: true, isBold: true } : {}),
    ...(wrong === '' ? [] : [span(wrong, { color: 'red', isBold: true })]),
  ])
  return spreadLine(tabs, drawChoice(state, rows, context), size.columns)
}

/** The way into the copy that is looked at, in place of the tabs: `nodes › gpu-02 › dataset-0004`. */
export function drawCopyTrail(input: ScreenInput, dataset: string): Line {
  const { state, size, context } = input
  const trail = [...listTrail(state.scope, state.tab), dataset].map((name, at, all) =>
    span(
      at === 0 ? ` ${name}` : ` ${context.glyphs.into} ${name}`,
      at === all.length - 1 ? { isBold: true } : {},
    ),
  )
  return fitLine(spreadLine(trail, [span('Esc back ', { isDim: true })], size.columns), size.columns)
}

/** Where one came from, the first list first. */
function listTrail(scope: Scope | undefined, here: string): readonly string[] {
  if (!scope) return [here]
  return [...listTrail(scope.outer, scope.from), scope.label]
}

/** The tab whose name is at this column; undefined if none is. */
export function findTab(input: ScreenInput, snapshot: StatusSnapshot, column: number): Tab | undefined {
  let end = 0
  for (const { tab, text, wrong } of placeTabs(input, snapshot)) {
    end += cellWidth(text) + cellWidth(wrong)
    if (column < end) return tab
  }
  return undefined
}

/** The longest form that fits: with counts, without those of hidden tabs, or only digits for hidden tabs. */
function placeTabs({ state, rows, size, context }: ScreenInput, snapshot: StatusSnapshot) {
  const counts: Readonly<Record<Tab, number>> = {
    copies: snapshot.copies.length,
    leases: snapshot.leases.length,
    events: snapshot.events.length,
    nodes: snapshot.nodes.length,
  }
  const more = counts.events >= STATUS_EVENTS ? '+' : ''
  const nameOf = (tab: Tab) => `${tab} ${counts[tab].toLocaleString('en-US')}${tab === 'events' ? more : ''}`
  const wrong = countWrong(snapshot)
  const place = (textOf: (tab: Tab) => string) =>
    TABS.map((tab, at) => ({
      tab,
      text: ` ${at + 1}${textOf(tab)} `,
      wrong: wrong[tab] ? `${context.glyphs.signs.wrong}${wrong[tab]} ` : '',
    }))
  const room = size.columns - cellWidth(lineText(drawChoice(state, rows, context)))
  const forms = [
    place((tab) => ` ${nameOf(tab)}`),
    place((tab) => ` ${tab === state.tab ? nameOf(tab) : tab}`),
    place((tab) => (tab === state.tab ? ` ${nameOf(tab)}` : '')),
  ]
  const widthOf = (form: (typeof forms)[number]) =>
    form.reduce((sum, { text, wrong: sign }) => sum + cellWidth(text) + cellWidth(sign), 0)
  return forms.find((form) => widthOf(form) <= room) ?? forms.at(-1)!
}

/** The number of troubles of each tab: refused jobs stand among leases, damaged copies among copies, short disks among nodes. */
function countWrong(snapshot: StatusSnapshot): Readonly<Partial<Record<Tab, number>>> {
  const troubles = listTroubles(snapshot)
  const count = (kind: string) => troubles.filter((trouble) => trouble.kind === kind).length
  return { leases: count('refused'), copies: count('damaged'), nodes: count('disk short') }
}

function drawChoice(state: ScreenState, rows: ListRows, context: DrawContext): Line {
  const { ellipsis, into } = context.glyphs
  if (state.filter === '' && state.mode.kind !== 'filter') {
    const list = findList(state)
    const sort = state.sorts[list]
    const group = list === state.tab ? '' : `by ${GROUPS[state.tab as keyof typeof GROUPS].slice(0, -1)} `
    const trail = state.scope ? `${listTrail(state.scope, state.tab).join(` ${into} `)} ` : ''
    return [
      span(cellWidth(trail) > 40 ? `${fitText(trail, 39, { ellipsis })} ` : trail, { color: 'yellow' }),
      span(`${group}${sort ? `${describeSort(sort)} ` : ''}`, { isDim: true }),
    ]
  }
  const found = `${rows.keys.length.toLocaleString('en-US')} of ${rows.total.toLocaleString('en-US')} `
  const shown = cellWidth(state.filter) > 20 ? fitText(state.filter, 20, { ellipsis }) : state.filter
  return [span(`/${shown} `, { color: 'yellow' }), span(found, { isDim: true })]
}
